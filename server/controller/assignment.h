// What a worker is told.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/jobs/job_record.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind::controller {

struct WorkerSettings {
  std::string state_dir;
  std::string daemon_target;  // gRPC target of the worker socket.
  int threads = 1;
  absl::Duration heartbeat_interval = absl::Seconds(5);
};

// The assignment of the job's newest attempt. REQUIRES: there is one. Errors: INTERNAL (BUG).
absl::StatusOr<worker::v1::WorkerAssignment> MakeAssignment(const jobs::JobRecord& record,
                                                            const WorkerSettings& settings);

}  // namespace traind::controller
