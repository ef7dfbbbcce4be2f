#include "worker/session/daemon_session.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log/log.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"

namespace traind {
namespace {

using worker::v1::DaemonResponse;
using worker::v1::WorkerRequest;
using worker::v1::WorkerService;

constexpr size_t kReportsPerBatch = 64;

void SetTime(worker::v1::Report& report) {
  const timespec now = absl::ToTimespec(absl::Now());
  report.mutable_time()->set_seconds(now.tv_sec);
  report.mutable_time()->set_nanos(static_cast<int32_t>(now.tv_nsec));
}

std::unique_ptr<WorkerService::Stub> Dial(const std::string& target) {
  grpc::ChannelArguments arguments;
  // The session has a back-off of its own; the channel's would add to it.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return WorkerService::NewStub(
      grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments));
}

// Doubles from `min` to `max`; each wait is a random part, at least half, of the current value.
class Backoff {
 public:
  Backoff(absl::Duration min, absl::Duration max) : min_(min), max_(max), next_(min) {}
  void Reset() { next_ = min_; }
  absl::Duration Next() {
    const absl::Duration wait = next_ * absl::Uniform(random_, 0.5, 1.0);
    next_ = std::min(2 * next_, max_);
    return wait;
  }

 private:
  const absl::Duration min_;
  const absl::Duration max_;
  absl::Duration next_;
  absl::BitGen random_;
};

}  // namespace

// One call of Attach, from hello to its end.
class DaemonSession::Connection {
 public:
  Connection(DaemonSession& session, WorkerService::Stub& stub)
      : session_(session), stream_(stub.Attach(&context_)) {}

  // Returns why the connection ended; `welcomed` is set when the daemon knew the worker.
  absl::Status Serve(bool& welcomed);

  // Makes Serve return soon, also out of a write that the daemon does not take.
  void Cancel() { context_.TryCancel(); }

 private:
  void ReadResponses();
  void Handle(const DaemonResponse& response);
  void SayHello();
  bool WaitForWelcome();
  void SendUntilBroken();
  bool SendReports();
  bool SendHeartbeat();
  void Acknowledge(int64_t number);

  DaemonSession& session_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<WorkerRequest, DaemonResponse>> stream_;
  int64_t sent_ = 0;  // Newest report number that was written to this stream.
  // Guarded by the session's mutex, which cannot be named in an annotation from here.
  bool broken_ = false;
  bool welcomed_ = false;
};

absl::Status DaemonSession::Connection::Serve(bool& welcomed) {
  std::thread reader([this] { ReadResponses(); });
  SayHello();
  if (WaitForWelcome()) SendUntilBroken();
  {
    absl::MutexLock lock(&session_.mutex_);
    welcomed = welcomed_;
    // A call that has ended by itself keeps its status only if it is not cancelled.
    if (!broken_) context_.TryCancel();
  }
  reader.join();
  return FromGrpcStatus(stream_->Finish());
}

void DaemonSession::Connection::ReadResponses() {
  DaemonResponse response;
  while (stream_->Read(&response)) Handle(response);
  absl::MutexLock lock(&session_.mutex_);
  broken_ = true;
}

void DaemonSession::Connection::Handle(const DaemonResponse& response) {
  switch (response.kind_case()) {
    case DaemonResponse::kWelcome: {
      Acknowledge(response.welcome().acknowledged());
      absl::MutexLock lock(&session_.mutex_);
      sent_ = response.welcome().acknowledged();
      welcomed_ = true;
      break;
    }
    case DaemonResponse::kAcknowledged:
      Acknowledge(response.acknowledged());
      break;
    case DaemonResponse::kStop:
      session_.stop_->Request(response.stop().checkpoint() ? StopKind::kStopWithCheckpoint
                                                           : StopKind::kStop);
      break;
    case DaemonResponse::KIND_NOT_SET:
      break;
  }
}

void DaemonSession::Connection::Acknowledge(int64_t number) {
  session_.spool_->Acknowledge(number);
  absl::MutexLock lock(&session_.mutex_);
  session_.acknowledged_ = std::max(session_.acknowledged_, number);
}

void DaemonSession::Connection::SayHello() {
  WorkerRequest request;
  worker::v1::Hello& hello = *request.mutable_hello();
  hello.set_attempt_uid(session_.options_.attempt_uid);
  hello.set_fencing_token(session_.options_.fencing_token);
  hello.set_rank(session_.options_.rank);
  hello.set_pid(::getpid());
  hello.set_last_report(session_.spool_->last_number());
  stream_->Write(request);
}

bool DaemonSession::Connection::WaitForWelcome() {
  absl::MutexLock lock(&session_.mutex_);
  const auto decided = [this] { return welcomed_ || broken_ || session_.closing_; };
  session_.mutex_.AwaitWithTimeout(absl::Condition(&decided), session_.options_.welcome_timeout);
  return welcomed_ && !broken_ && !session_.closing_;
}

void DaemonSession::Connection::SendUntilBroken() {
  absl::Time heartbeat = absl::InfinitePast();
  while (true) {
    {
      absl::MutexLock lock(&session_.mutex_);
      const auto wanted = [this] {
        return broken_ || session_.closing_ || session_.appended_ > sent_;
      };
      session_.mutex_.AwaitWithDeadline(absl::Condition(&wanted), heartbeat);
      if (broken_ || session_.closing_) return;
    }
    if (absl::Now() >= heartbeat) {
      if (!SendHeartbeat()) return;
      heartbeat = absl::Now() + session_.options_.heartbeat_interval;
    }
    if (!SendReports()) return;
  }
}

bool DaemonSession::Connection::SendHeartbeat() {
  WorkerRequest request;
  {
    absl::MutexLock lock(&session_.mutex_);
    request.mutable_heartbeat()->set_step(session_.step_);
  }
  return stream_->Write(request);
}

bool DaemonSession::Connection::SendReports() {
  // A report that cannot be made durable is sent all the same: the daemon will keep it.
  const absl::Status synced = session_.spool_->Sync();
  if (!synced.ok()) {
    Log(LogLevel::kWarn, "worker.spool_sync_failed", {{"error", std::string(synced.message())}});
  }
  auto reports = session_.spool_->ReadAfter(sent_, kReportsPerBatch);
  if (!reports.ok()) {
    Log(LogLevel::kError, "worker.spool_damaged",
        {{"error", std::string(reports.status().message())}});
    return false;
  }
  for (worker::v1::Report& report : *reports) {
    WorkerRequest request;
    *request.mutable_report() = std::move(report);
    if (!stream_->Write(request)) return false;
    sent_ = request.report().number();
  }
  return true;
}

absl::StatusOr<std::unique_ptr<DaemonSession>> DaemonSession::Start(DaemonSessionOptions options,
                                                                    StopFlag* stop) {
  TRAIND_ASSIGN_OR_RETURN(auto spool, ReportSpool::Open(options.spool_path));
  return std::unique_ptr<DaemonSession>(
      new DaemonSession(std::move(options), std::move(spool), stop));
}

DaemonSession::DaemonSession(DaemonSessionOptions options, std::unique_ptr<ReportSpool> spool,
                             StopFlag* stop)
    : options_(std::move(options)), spool_(std::move(spool)), stop_(stop) {
  {
    absl::MutexLock lock(&mutex_);
    appended_ = spool_->last_number();
  }
  thread_ = std::thread([this] { Run(); });
}

DaemonSession::~DaemonSession() {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
    if (connection_ != nullptr) connection_->Cancel();
  }
  thread_.join();
}

void DaemonSession::Send(worker::v1::Report report) {
  SetTime(report);
  const absl::StatusOr<int64_t> number = spool_->Append(std::move(report));
  if (!number.ok()) {
    Log(LogLevel::kError, "worker.report_dropped",
        {{"error", std::string(number.status().message())}});
    return;
  }
  absl::MutexLock lock(&mutex_);
  appended_ = *number;
}

void DaemonSession::OnPhase(v1::Attempt::Phase phase) {
  worker::v1::Report report;
  report.set_phase(phase);
  Send(std::move(report));
}

void DaemonSession::OnPlan(const v1::TrainingPlan& plan) {
  worker::v1::Report report;
  *report.mutable_plan() = plan;
  Send(std::move(report));
}

void DaemonSession::OnResumed(int64_t step) {
  worker::v1::Report report;
  report.mutable_resumed()->set_step(step);
  Send(std::move(report));
}

void DaemonSession::OnStep(const v1::StepMetrics& metrics) {
  worker::v1::Report report;
  *report.mutable_step() = metrics;
  Send(std::move(report));
}

void DaemonSession::OnEval(const v1::EvalMetrics& metrics) {
  worker::v1::Report report;
  *report.mutable_eval() = metrics;
  Send(std::move(report));
}

void DaemonSession::OnCheckpoint(const v1::CheckpointSaved& saved) {
  worker::v1::Report report;
  *report.mutable_checkpoint() = saved;
  Send(std::move(report));
}

void DaemonSession::OnSample(const v1::SampleAnswer& answer) {
  worker::v1::Report report;
  *report.mutable_sample() = answer;
  Send(std::move(report));
}

void DaemonSession::OnNotice(const v1::Notice& notice) {
  worker::v1::Report report;
  *report.mutable_notice() = notice;
  Send(std::move(report));
}

void DaemonSession::Finish(const worker::v1::Finished& finished) {
  worker::v1::Report report;
  *report.mutable_finished() = finished;
  Send(std::move(report));
}

void DaemonSession::OnUpdate(int64_t step) {
  absl::MutexLock lock(&mutex_);
  step_ = step;
}

bool DaemonSession::SleepUnlessClosing(absl::Duration duration) {
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(absl::Condition(&closing_), duration);
}

absl::Status DaemonSession::Connect(WorkerService::Stub& stub, bool& welcomed) {
  Connection connection(*this, stub);
  {
    absl::MutexLock lock(&mutex_);
    if (closing_) connection.Cancel();
    connection_ = &connection;
  }
  const absl::Status ended = connection.Serve(welcomed);
  absl::MutexLock lock(&mutex_);
  connection_ = nullptr;
  return ended;
}

void DaemonSession::Run() {
  const auto stub = Dial(options_.daemon_target);
  Backoff backoff(options_.min_backoff, options_.max_backoff);
  do {
    bool welcomed = false;
    const absl::Status ended = Connect(*stub, welcomed);
    if (ReasonOf(ended) == Reason::kAttemptFenced) {
      Log(LogLevel::kError, "worker.fenced", {{"error", std::string(ended.message())}});
      stop_->Request(StopKind::kFenced);
      absl::MutexLock lock(&mutex_);
      fenced_ = true;
      return;
    }
    if (welcomed) backoff.Reset();
  } while (SleepUnlessClosing(backoff.Next()));
}

absl::Status DaemonSession::WaitUntilDelivered(absl::Duration limit,
                                               absl::Duration limit_after_stop) {
  const absl::Time start = absl::Now();
  absl::MutexLock lock(&mutex_);
  const auto decided = [this] { return fenced_ || acknowledged_ >= appended_; };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&decided), absl::Milliseconds(100))) {
    const bool stopped = stop_->kind() != StopKind::kNone;
    if (absl::Now() - start >= (stopped ? std::min(limit, limit_after_stop) : limit)) break;
  }
  if (fenced_) {
    return Error(absl::StatusCode::kFailedPrecondition, Reason::kAttemptFenced,
                 "another attempt of the job has taken over");
  }
  if (acknowledged_ >= appended_) return absl::OkStatus();
  return absl::DeadlineExceededError(absl::StrCat("the daemon has not acknowledged reports ",
                                                  acknowledged_ + 1, " to ", appended_,
                                                  "; they stay in ", options_.spool_path));
}

}  // namespace traind
