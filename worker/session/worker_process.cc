#include "worker/session/worker_process.h"

#include <google/protobuf/util/json_util.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"
#include "worker/session/daemon_session.h"
#include "worker/session/signal_watcher.h"
#include "worker/trainer/cpu_info.h"
#include "worker/trainer/run_training.h"

namespace traind {
namespace {

using worker::v1::Finished;
using worker::v1::WorkerAssignment;

constexpr absl::Duration kDeliveryLimit = absl::Hours(24);
constexpr absl::Duration kDeliveryLimitAfterStop = absl::Minutes(1);

absl::Status WrongAssignment(const std::string& path, absl::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kLaunchFailed,
               absl::StrCat("assignment ", path, ": ", what), {{"path", path}});
}

absl::StatusOr<std::unique_ptr<DaemonSession>> StartSession(const WorkerAssignment& assignment,
                                                            StopFlag* stop) {
  DaemonSessionOptions options;
  options.daemon_target = assignment.daemon_target();
  options.attempt_uid = assignment.attempt_uid();
  options.fencing_token = assignment.fencing_token();
  options.rank = assignment.rank();
  options.spool_path =
      absl::StrCat(assignment.attempt_dir(), "/reports.", assignment.rank(), ".spool");
  const auto& interval = assignment.heartbeat_interval();
  if (interval.seconds() > 0 || interval.nanos() > 0) {
    options.heartbeat_interval =
        absl::Seconds(interval.seconds()) + absl::Nanoseconds(interval.nanos());
  }
  return DaemonSession::Start(std::move(options), stop);
}

absl::StatusOr<TrainingEnd> Train(const WorkerAssignment& assignment, ReportSink& sink,
                                  const StopFlag& stop) {
  TRAIND_RETURN_IF_ERROR(CheckCpu(CpuFeatures()));
  TRAIND_ASSIGN_OR_RETURN(RunOptions options, RunOptionsFromSpec(assignment.spec()));
  options.trainer.job_name = assignment.job_name();
  options.run_id = assignment.job_uid();
  options.checkpoints_dir = assignment.checkpoints_dir();
  options.adapter_dir = assignment.adapter_dir();
  options.threads = assignment.threads();
  return RunTraining(options, sink, stop);
}

Finished ToFinished(const absl::StatusOr<TrainingEnd>& end, const std::string& adapter_dir) {
  Finished finished;
  if (!end.ok()) {
    finished.set_result(Finished::FAILED);
    *finished.mutable_error() = ToRpcStatus(end.status());
    return finished;
  }
  switch (*end) {
    case TrainingEnd::kFinished:
      finished.set_result(Finished::SUCCEEDED);
      finished.set_adapter_path(adapter_dir);
      break;
    case TrainingEnd::kStopped:
      finished.set_result(Finished::STOPPED);
      break;
  }
  return finished;
}

WorkerExit Deliver(const Finished& finished, DaemonSession& session) {
  session.Finish(finished);
  const absl::Status delivered =
      session.WaitUntilDelivered(kDeliveryLimit, kDeliveryLimitAfterStop);
  if (ReasonOf(delivered) == Reason::kAttemptFenced) return WorkerExit::kFenced;
  if (!delivered.ok()) {
    Log(LogLevel::kError, "worker.reports_undelivered",
        {{"error", std::string(delivered.message())}});
    return WorkerExit::kUndelivered;
  }
  if (finished.result() == Finished::SUCCEEDED) return WorkerExit::kSucceeded;
  return finished.result() == Finished::STOPPED ? WorkerExit::kStopped : WorkerExit::kFailed;
}

}  // namespace

absl::StatusOr<WorkerAssignment> ReadAssignment(const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(const std::string json, ReadFile(path, Reason::kLaunchFailed));
  WorkerAssignment assignment;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json, &assignment);
  if (!parsed.ok()) return WrongAssignment(path, std::string(parsed.message()));
  const std::pair<const char*, const std::string*> needed[] = {
      {"job_uid", &assignment.job_uid()},
      {"job_name", &assignment.job_name()},
      {"attempt_uid", &assignment.attempt_uid()},
      {"daemon_target", &assignment.daemon_target()},
      {"attempt_dir", &assignment.attempt_dir()},
      {"checkpoints_dir", &assignment.checkpoints_dir()},
      {"adapter_dir", &assignment.adapter_dir()}};
  for (const auto& [field, value] : needed) {
    if (value->empty()) return WrongAssignment(path, absl::StrCat("`", field, "` is missing"));
  }
  return assignment;
}

WorkerExit RunWorker(const std::string& assignment_path) {
  StopFlag stop;
  SignalWatcher signals(&stop);
  const auto assignment = ReadAssignment(assignment_path);
  absl::Status started = assignment.status();
  std::unique_ptr<DaemonSession> session;
  if (started.ok()) {
    auto opened = StartSession(*assignment, &stop);
    started = opened.status();
    if (opened.ok()) session = *std::move(opened);
  }
  if (!started.ok()) {
    Log(LogLevel::kError, "worker.assignment_refused", {{"error", std::string(started.message())}});
    return WorkerExit::kBadAssignment;
  }
  Log(LogLevel::kInfo, "worker.started", {{"job", assignment->job_name()}});
  const auto end = Train(*assignment, *session, stop);
  if (!end.ok()) {
    Log(LogLevel::kError, "worker.run_failed",
        {{"job", assignment->job_name()},
         {"reason", std::string(ReasonName(ReasonOf(end.status())))},
         {"error", std::string(end.status().message())}});
  }
  if (stop.kind() == StopKind::kFenced) return WorkerExit::kFenced;
  return Deliver(ToFinished(end, assignment->adapter_dir()), *session);
}

}  // namespace traind
