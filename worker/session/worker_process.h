// The worker as a process.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "traind/worker/v1/worker_service.pb.h"
#include "worker/session/exit_code.h"

namespace traind {

// Reads the proto JSON at `path`. Errors: NOT_FOUND, INVALID_ARGUMENT naming file and field.
absl::StatusOr<worker::v1::WorkerAssignment> ReadAssignment(const std::string& path);

// Runs the assignment to its end and delivers its reports. A daemon that is away is waited for:
// a day after the run has ended, a minute once a stop was asked for.
WorkerExit RunWorker(const std::string& assignment_path);

}  // namespace traind
