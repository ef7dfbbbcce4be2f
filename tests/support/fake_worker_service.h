// The daemon's side of the worker socket, in process, for tests of the worker.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"
#include "traind/worker/v1/worker_service.grpc.pb.h"

namespace traind {

// Keeps reports as the daemon does: in order, dropping what it has already. A number that skips
// one ends the call and is remembered as a gap. Thread-safe.
class FakeWorkerService : public worker::v1::WorkerService::Service {
 public:
  using Stream = grpc::ServerReaderWriter<worker::v1::DaemonResponse, worker::v1::WorkerRequest>;

  explicit FakeWorkerService(std::string target) : target_(std::move(target)) {}
  ~FakeWorkerService() override { StopServing(); }

  void StartServing() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  // Breaks every connection at once, as a crash of the daemon would.
  void StopServing() {
    if (server_ == nullptr) return;
    server_->Shutdown(absl::ToChronoTime(absl::UnixEpoch()));
    server_.reset();
  }

  // The call is ended after this many requests were read from it, hello included, each time
  // anew; 0: never. The last one is not acknowledged.
  void BreakAfterRequests(int count) {
    absl::MutexLock lock(&mutex_);
    break_after_ = count;
  }
  void Fence() {
    absl::MutexLock lock(&mutex_);
    fenced_ = true;
  }
  void AcknowledgeNothing() {
    absl::MutexLock lock(&mutex_);
    acknowledge_ = false;
  }
  // Takes the call but never says welcome.
  void StaySilent() {
    absl::MutexLock lock(&mutex_);
    silent_ = true;
  }
  // Sends Stop on every connection as soon as report `number` is there.
  void StopAtReport(int64_t number, bool checkpoint) {
    absl::MutexLock lock(&mutex_);
    stop_at_ = number;
    stop_checkpoint_ = checkpoint;
  }

  std::vector<worker::v1::Report> reports() {
    absl::MutexLock lock(&mutex_);
    return reports_;
  }
  std::vector<worker::v1::Hello> hellos() {
    absl::MutexLock lock(&mutex_);
    return hellos_;
  }
  std::vector<std::string> gaps() {
    absl::MutexLock lock(&mutex_);
    return gaps_;
  }
  int64_t heartbeats() {
    absl::MutexLock lock(&mutex_);
    return heartbeats_;
  }

  // True if `reached` became true in time; it is called with the lock held.
  bool WaitForReports(size_t count, absl::Duration limit = absl::Seconds(30)) {
    return WaitFor([&] { return reports_.size() >= count; }, limit);
  }
  bool WaitForHellos(size_t count, absl::Duration limit = absl::Seconds(30)) {
    return WaitFor([&] { return hellos_.size() >= count; }, limit);
  }
  bool WaitForHeartbeats(int64_t count, absl::Duration limit = absl::Seconds(30)) {
    return WaitFor([&] { return heartbeats_ >= count; }, limit);
  }
  bool WaitForFinished(absl::Duration limit = absl::Seconds(60)) {
    return WaitFor([&] { return !reports_.empty() && reports_.back().has_finished(); }, limit);
  }

  grpc::Status Attach(grpc::ServerContext*, Stream* stream) override {
    worker::v1::WorkerRequest request;
    for (int count = 1; stream->Read(&request); ++count) {
      const grpc::Status status = Take(request, *stream);
      if (!status.ok()) return status;
      absl::MutexLock lock(&mutex_);
      if (break_after_ > 0 && count >= break_after_) {
        return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken by the test");
      }
    }
    return grpc::Status::OK;
  }

 private:
  bool WaitFor(const std::function<bool()>& reached, absl::Duration limit) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(&reached), limit);
  }

  grpc::Status Take(const worker::v1::WorkerRequest& request, Stream& stream) {
    absl::MutexLock lock(&mutex_);
    if (fenced_) {
      return ToGrpcStatus(Error(absl::StatusCode::kFailedPrecondition, Reason::kAttemptFenced,
                                "attempt 1 is not the current one"));
    }
    worker::v1::DaemonResponse response;
    if (request.has_hello()) {
      hellos_.push_back(request.hello());
      response.mutable_welcome()->set_acknowledged(committed());
      if (!silent_) stream.Write(response);
    } else if (request.has_heartbeat()) {
      ++heartbeats_;
    } else if (request.has_report()) {
      return TakeReport(request.report(), stream);
    }
    return grpc::Status::OK;
  }

  grpc::Status TakeReport(const worker::v1::Report& report, Stream& stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (report.number() > committed() + 1) {
      gaps_.push_back(absl::StrCat(report.number(), " after ", committed()));
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, gaps_.back());
    }
    if (report.number() == committed() + 1) reports_.push_back(report);
    worker::v1::DaemonResponse response;
    response.set_acknowledged(committed());
    if (acknowledge_) stream.Write(response);
    if (stop_at_ > 0 && committed() >= stop_at_) {
      response.mutable_stop()->set_checkpoint(stop_checkpoint_);
      stream.Write(response);
    }
    return grpc::Status::OK;
  }

  int64_t committed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int64_t>(reports_.size());
  }

  const std::string target_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  int break_after_ ABSL_GUARDED_BY(mutex_) = 0;
  bool fenced_ ABSL_GUARDED_BY(mutex_) = false;
  bool silent_ ABSL_GUARDED_BY(mutex_) = false;
  bool acknowledge_ ABSL_GUARDED_BY(mutex_) = true;
  int64_t stop_at_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_checkpoint_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<worker::v1::Report> reports_ ABSL_GUARDED_BY(mutex_);
  std::vector<worker::v1::Hello> hellos_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> gaps_ ABSL_GUARDED_BY(mutex_);
  int64_t heartbeats_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace traind
