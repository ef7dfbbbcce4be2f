// The worker's line to the daemon.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "traind/worker/v1/worker_service.grpc.pb.h"
#include "worker/session/report_spool.h"
#include "worker/trainer/report_sink.h"
#include "worker/trainer/stop_flag.h"

namespace traind {

struct DaemonSessionOptions {
  std::string daemon_target;  // gRPC target, such as `unix:/run/traind/worker.sock`.
  std::string attempt_uid;
  int64_t fencing_token = 0;
  int32_t rank = 0;
  std::string spool_path;
  absl::Duration heartbeat_interval = absl::Seconds(2);
  absl::Duration min_backoff = absl::Milliseconds(200);
  absl::Duration max_backoff = absl::Seconds(5);
  // How long a daemon that took the call may be silent before its `welcome`.
  absl::Duration welcome_timeout = absl::Seconds(10);
};

// Keeps reports in a ReportSpool and delivers them over WorkerService.Attach: dials, says hello,
// sends everything above the number that the daemon has acknowledged, then what comes, and
// heartbeats between. When the line breaks it dials again, with back-off and jitter, for as long as
// it lives. A daemon that is away costs the caller nothing.
//
// `Stop` from the daemon and a refusal with ATTEMPT_FENCED go to the StopFlag; after the latter it
// does not dial again. Thread-safe; runs two threads of its own. Crash: see ReportSpool.
class DaemonSession : public ReportSink {
 public:
  // `stop` is borrowed and outlives the session. Errors: as ReportSpool::Open.
  static absl::StatusOr<std::unique_ptr<DaemonSession>> Start(DaemonSessionOptions options,
                                                              StopFlag* stop);
  // Ends the connection. What is not acknowledged stays in the spool.
  ~DaemonSession() override;

  void OnPhase(v1::Attempt::Phase phase) override;
  void OnPlan(const v1::TrainingPlan& plan) override;
  void OnResumed(int64_t step) override;
  void OnStep(const v1::StepMetrics& metrics) override;
  void OnEval(const v1::EvalMetrics& metrics) override;
  void OnCheckpoint(const v1::CheckpointSaved& saved) override;
  void OnSample(const v1::SampleAnswer& answer) override;
  void OnNotice(const v1::Notice& notice) override;
  void OnUpdate(int64_t step) override;

  // The attempt's last report.
  void Finish(const worker::v1::Finished& finished);

  // Waits until the daemon has acknowledged every report. Errors: FAILED_PRECONDITION
  // (ATTEMPT_FENCED), DEADLINE_EXCEEDED after `limit`, or after `limit_after_stop` once the stop
  // flag asks for a stop.
  absl::Status WaitUntilDelivered(absl::Duration limit, absl::Duration limit_after_stop);

 private:
  class Connection;

  DaemonSession(DaemonSessionOptions options, std::unique_ptr<ReportSpool> spool, StopFlag* stop);
  void Send(worker::v1::Report report);
  void Run();
  // One connection, from dial to end. Returns why it ended.
  absl::Status Connect(worker::v1::WorkerService::Stub& stub, bool& welcomed);
  bool SleepUnlessClosing(absl::Duration duration);

  const DaemonSessionOptions options_;
  const std::unique_ptr<ReportSpool> spool_;
  StopFlag* const stop_;

  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool fenced_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t appended_ ABSL_GUARDED_BY(mutex_) = 0;      // Newest number in the spool.
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;  // Newest number that the daemon committed.
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;
  Connection* connection_ ABSL_GUARDED_BY(mutex_) = nullptr;  // While one is open.
  std::thread thread_;
};

}  // namespace traind
