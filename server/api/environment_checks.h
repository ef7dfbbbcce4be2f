// What a job will need, looked at before it needs it.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/config/config.h"
#include "traind/v1/server_service.pb.h"

namespace traind::api {

// Runs `worker_binary --check`, waits at most `timeout`, and reports the first line of an error.
v1::EnvironmentCheck CheckWorkerBinary(const std::string& worker_binary, absl::Duration timeout);

// Whether the state folder can be written to and how much room its disk has.
v1::EnvironmentCheck CheckStateDir(const std::string& state_dir);

// Whether the folder is there and readable. A missing one is a warning: no job can use it.
v1::EnvironmentCheck CheckAllowedRoot(const std::string& root);

v1::EnvironmentCheck CheckDeviceCount(size_t count);

// All of them, in a fixed order. Takes as long as the worker's check.
std::vector<v1::EnvironmentCheck> CheckEnvironment(const config::v1::TraindConfig& config,
                                                   size_t device_count);

}  // namespace traind::api
