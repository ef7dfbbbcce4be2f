#include "server/controller/assignment.h"

#include "common/status/errors.h"
#include "server/artifacts/job_paths.h"

namespace traind::controller {

absl::StatusOr<worker::v1::WorkerAssignment> MakeAssignment(const jobs::JobRecord& record,
                                                            const WorkerSettings& settings) {
  TRAIND_ASSIGN_OR_RETURN(const artifacts::JobPaths paths,
                          artifacts::JobPaths::ForJob(settings.state_dir, record.job.uid()));
  const storage::v1::AttemptRecord& attempt = record.attempts.back();
  worker::v1::WorkerAssignment assignment;
  assignment.set_job_uid(record.job.uid());
  assignment.set_job_name(record.job.name());
  assignment.set_attempt(attempt.number());
  assignment.set_attempt_uid(attempt.uid());
  assignment.set_fencing_token(attempt.fencing_token());
  *assignment.mutable_spec() = record.job.spec();
  assignment.set_daemon_target(settings.daemon_target);
  assignment.set_attempt_dir(paths.attempt_dir(attempt.number()));
  assignment.set_checkpoints_dir(paths.checkpoints_dir());
  assignment.set_adapter_dir(paths.adapter_dir());
  *assignment.mutable_devices() = record.job.attempt().devices();
  assignment.set_threads(settings.threads * std::max(1, record.job.attempt().devices_size()));
  const timespec interval = absl::ToTimespec(settings.heartbeat_interval);
  assignment.mutable_heartbeat_interval()->set_seconds(interval.tv_sec);
  assignment.mutable_heartbeat_interval()->set_nanos(static_cast<int32_t>(interval.tv_nsec));
  return assignment;
}

}  // namespace traind::controller
