// A worker without a model, for tests of the daemon: speaks traind.worker.v1 as the real one does.
//
// The environment variable TRAIND_FAKE_WORKER says how it behaves, as `key=value` words:
//   steps=N         updates in all (5)
//   delay_ms=N      pause before each update (1)
//   save_every=N    "checkpoint" after every N updates; the next attempt resumes there (0: never)
//   crash_at=N      kill itself after reporting update N …
//   crash_attempts=N  … but only in the first N attempts (all)
//   hold_at=N       after update N wait until the file `hold_file` exists
//   hold_file=PATH
//   fail=REASON     report Finished{FAILED} with this reason instead of the updates
//   nan_at=N        report a loss of NaN at update N
//   deaf=1          ignore Stop and SIGTERM
//   never_dial=1    do nothing but live
//   drop_line=1     break the connection after each acknowledgement
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <map>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"
#include "common/status/rpc_status.h"
#include "traind/worker/v1/worker_service.grpc.pb.h"

namespace traind {
namespace {

using worker::v1::DaemonResponse;
using worker::v1::Finished;
using worker::v1::Report;
using worker::v1::WorkerRequest;

class Behaviour {
 public:
  Behaviour() {
    const char* text = std::getenv("TRAIND_FAKE_WORKER");
    for (const auto& word : absl::StrSplit(text == nullptr ? "" : text, ' ', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> pair =
          absl::StrSplit(word, absl::MaxSplits('=', 1));
      values_[pair.first] = pair.second;
    }
  }
  std::string Text(const std::string& key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? "" : found->second;
  }
  int64_t Number(const std::string& key, int64_t otherwise) const {
    int64_t value = otherwise;
    return absl::SimpleAtoi(Text(key), &value) ? value : otherwise;
  }

 private:
  std::map<std::string, std::string> values_;
};

// Numbers reports, keeps them until they are acknowledged, and sends them over and over.
class Line {
 public:
  Line(const worker::v1::WorkerAssignment& assignment, const Behaviour& behaviour)
      : assignment_(assignment), behaviour_(behaviour), thread_([this] { DialForEver(); }) {
    thread_.detach();
  }

  void Send(Report report) {
    absl::MutexLock lock(&mutex_);
    report.set_number(static_cast<int64_t>(reports_.size()) + 1);
    report.mutable_time()->set_seconds(absl::ToUnixSeconds(absl::Now()));
    reports_.push_back(std::move(report));
  }
  bool stopped() const {
    absl::MutexLock lock(&mutex_);
    return stopped_;
  }
  void WaitUntilDelivered() {
    absl::MutexLock lock(&mutex_);
    const auto delivered = [this] {
      return fenced_ || acknowledged_ == static_cast<int64_t>(reports_.size());
    };
    mutex_.Await(absl::Condition(&delivered));
  }

 private:
  using Stream = grpc::ClientReaderWriter<WorkerRequest, DaemonResponse>;

  void DialForEver() {
    while (true) {
      Dial();
      // Polls for a daemon.
      absl::SleepFor(absl::Milliseconds(20));
    }
  }

  void Dial() {
    const auto channel =
        grpc::CreateChannel(assignment_.daemon_target(), grpc::InsecureChannelCredentials());
    const auto stub = worker::v1::WorkerService::NewStub(channel);
    grpc::ClientContext context;
    const auto stream = stub->Attach(&context);
    SayHello(*stream);
    DaemonResponse response;
    if (stream->Read(&response)) {
      Acknowledge(response.welcome().acknowledged());
      Serve(context, *stream, response.welcome().acknowledged());
    }
    const absl::Status ended = FromGrpcStatus(stream->Finish());
    if (ReasonOf(ended) != Reason::kAttemptFenced) return;
    std::fprintf(stderr, "fenced: %s\n", std::string(ended.message()).c_str());
    absl::MutexLock lock(&mutex_);
    fenced_ = stopped_ = true;
  }

  void SayHello(Stream& stream) {
    WorkerRequest request;
    request.mutable_hello()->set_attempt_uid(assignment_.attempt_uid());
    request.mutable_hello()->set_fencing_token(assignment_.fencing_token());
    request.mutable_hello()->set_pid(::getpid());
    stream.Write(request);
  }

  void Serve(grpc::ClientContext& context, Stream& stream, int64_t sent) {
    bool broken = false;
    std::thread reader([&] { ReadResponses(context, stream, broken); });
    absl::Time heartbeat = absl::InfinitePast();
    bool writable = true;
    while (writable) {
      WorkerRequest request;
      {
        absl::MutexLock lock(&mutex_);
        const auto work = [&] { return broken || sent < static_cast<int64_t>(reports_.size()); };
        mutex_.AwaitWithDeadline(absl::Condition(&work), heartbeat);
        if (broken) break;
        if (sent < static_cast<int64_t>(reports_.size())) {
          *request.mutable_report() = reports_[static_cast<size_t>(sent++)];
        }
      }
      if (!request.has_report()) {
        request.mutable_heartbeat();
        heartbeat = absl::Now() + absl::Milliseconds(100);
      }
      writable = stream.Write(request);
    }
    context.TryCancel();
    reader.join();
  }

  void ReadResponses(grpc::ClientContext& context, Stream& stream, bool& broken) {
    DaemonResponse response;
    while (stream.Read(&response)) {
      if (response.has_acknowledged()) Acknowledge(response.acknowledged());
      if (response.has_acknowledged() && behaviour_.Number("drop_line", 0) > 0) context.TryCancel();
      if (response.has_stop() && behaviour_.Number("deaf", 0) == 0) {
        absl::MutexLock lock(&mutex_);
        stopped_ = true;
      }
    }
    absl::MutexLock lock(&mutex_);
    broken = true;
  }

  void Acknowledge(int64_t number) {
    absl::MutexLock lock(&mutex_);
    acknowledged_ = std::max(acknowledged_, number);
  }

  const worker::v1::WorkerAssignment& assignment_;
  const Behaviour& behaviour_;
  mutable absl::Mutex mutex_;
  std::vector<Report> reports_;
  int64_t acknowledged_ = 0;
  bool stopped_ = false;
  bool fenced_ = false;
  std::thread thread_;
};

class FakeRun {
 public:
  FakeRun(const worker::v1::WorkerAssignment& assignment, const Behaviour& behaviour)
      : assignment_(assignment),
        behaviour_(behaviour),
        line_(assignment, behaviour),
        total_(behaviour.Number("steps", 5)) {}

  void Run() {
    Prepare();
    const std::string failure = behaviour_.Text("fail");
    const bool finished = failure.empty() && Train();
    Report report;
    if (!failure.empty()) {
      report.mutable_finished()->set_result(Finished::FAILED);
      *report.mutable_finished()->mutable_error() =
          ToRpcStatus(Error(absl::StatusCode::kFailedPrecondition, ReasonFromName(failure),
                            "the fake worker was told to fail"));
    } else {
      report.mutable_finished()->set_result(finished ? Finished::SUCCEEDED : Finished::STOPPED);
      if (finished) report.mutable_finished()->set_adapter_path(assignment_.adapter_dir());
    }
    line_.Send(report);
    line_.WaitUntilDelivered();
  }

 private:
  std::string CheckpointFile() const {
    return absl::StrCat(assignment_.checkpoints_dir(), "/fake_step");
  }

  void Prepare() {
    for (const auto phase : {v1::Attempt::LOADING_MODEL, v1::Attempt::LOADING_DATA}) {
      Report report;
      report.set_phase(phase);
      line_.Send(report);
    }
    Report plan;
    plan.mutable_plan()->set_total_steps(total_);
    plan.mutable_plan()->set_rows_kept(10);
    line_.Send(plan);
    const absl::StatusOr<std::string> checkpoint = ReadFile(CheckpointFile());
    if (!checkpoint.ok() || !absl::SimpleAtoi(*checkpoint, &step_)) return;
    Report resumed;
    resumed.mutable_resumed()->set_step(step_);
    line_.Send(resumed);
  }

  // Whether all updates were made.
  bool Train() {
    while (step_ < total_) {
      if (line_.stopped()) return false;
      // Stands for the work of an update; nobody waits for it but with a deadline.
      absl::SleepFor(absl::Milliseconds(behaviour_.Number("delay_ms", 1)));
      ++step_;
      ReportStep();
      const int64_t save_every = behaviour_.Number("save_every", 0);
      if (save_every > 0 && step_ % save_every == 0) Save();
      CrashIfTold();
      if (!HoldIfTold()) return false;
    }
    return true;
  }

  void ReportStep() {
    const bool nan = step_ == behaviour_.Number("nan_at", 0);
    Report report;
    v1::StepMetrics& metrics = *report.mutable_step();
    metrics.set_step(step_);
    metrics.set_total_steps(total_);
    metrics.set_loss(nan ? std::numeric_limits<double>::quiet_NaN()
                         : 1.0 / static_cast<double>(step_));
    metrics.set_learning_rate(0.001);
    metrics.set_grad_norm(nan ? std::numeric_limits<double>::infinity() : 0.5);
    metrics.set_tokens(100);
    metrics.set_tokens_per_second(1000);
    metrics.set_memory_bytes(1 << 20);
    metrics.set_peak_memory_bytes(2 << 20);
    metrics.set_cpu_cores(1);
    line_.Send(report);
  }

  void Save() {
    if (!CreateDirectories(assignment_.checkpoints_dir()).ok()) return;
    if (!WriteFileAtomically(CheckpointFile(), absl::StrCat(step_)).ok()) return;
    Report report;
    report.mutable_checkpoint()->set_step(step_);
    line_.Send(report);
  }

  void CrashIfTold() {
    const int64_t attempts =
        behaviour_.Number("crash_attempts", std::numeric_limits<int32_t>::max());
    if (step_ != behaviour_.Number("crash_at", 0) || assignment_.attempt() > attempts) return;
    line_.WaitUntilDelivered();
    std::fprintf(stderr, "the fake worker was told to crash at step %ld\n", step_);
    ::raise(SIGKILL);
  }

  // False: told to stop meanwhile.
  bool HoldIfTold() {
    if (step_ != behaviour_.Number("hold_at", 0)) return true;
    while (!FileExists(behaviour_.Text("hold_file"))) {
      if (line_.stopped()) return false;
      absl::SleepFor(absl::Milliseconds(2));  // Polls for the file.
    }
    return true;
  }

  const worker::v1::WorkerAssignment& assignment_;
  const Behaviour& behaviour_;
  Line line_;
  const int64_t total_;
  int64_t step_ = 0;
};

int Main(int argc, char** argv) {
  const absl::StatusOr<std::string> json = ReadFile(argc == 3 ? argv[2] : "");
  worker::v1::WorkerAssignment assignment;
  if (!json.ok() || !google::protobuf::util::JsonStringToMessage(*json, &assignment).ok()) {
    std::fprintf(stderr, "usage: fake_worker --assignment FILE\n");
    return 2;
  }
  const Behaviour behaviour;
  if (behaviour.Number("deaf", 0) > 0) ::signal(SIGTERM, SIG_IGN);
  while (behaviour.Number("never_dial", 0) > 0) ::pause();
  FakeRun(assignment, behaviour).Run();
  // The thread that dials never ends by itself.
  std::_Exit(0);
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
