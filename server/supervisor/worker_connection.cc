#include "server/supervisor/worker_connection.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/log/log.h"

namespace traind::supervisor {
namespace {

constexpr size_t kReportsPerCommit = 256;
constexpr size_t kReportsInMemory = 4096;

}  // namespace

void WorkerConnection::Run(const worker::v1::Welcome& welcome,
                           const std::function<void()>& on_message) {
  worker::v1::DaemonResponse response;
  *response.mutable_welcome() = welcome;
  if (!stream_.Write(response)) return;
  std::thread answering([this] { AnswerAll(); });
  ReadAll(on_message);
  answering.join();
}

void WorkerConnection::SendStop(const worker::v1::Stop& stop) {
  absl::MutexLock lock(&mutex_);
  stop_ = stop;
}

void WorkerConnection::ReadAll(const std::function<void()>& on_message) {
  worker::v1::WorkerRequest request;
  while (stream_.Read(&request)) {
    on_message();
    if (!request.has_report()) continue;
    absl::MutexLock lock(&mutex_);
    received_.push_back(std::move(*request.mutable_report()));
    const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return received_.size() < kReportsInMemory || !answering_;
    };
    mutex_.Await(absl::Condition(&has_room));
  }
  absl::MutexLock lock(&mutex_);
  read_all_ = true;
}

void WorkerConnection::AnswerAll() {
  while (true) {
    std::vector<worker::v1::Report> batch;
    std::optional<worker::v1::Stop> stop;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return read_all_ || !received_.empty() || stop_.has_value();
      };
      mutex_.Await(absl::Condition(&has_work));
      stop = std::exchange(stop_, std::nullopt);
      const size_t count = std::min(received_.size(), kReportsPerCommit);
      const auto end = received_.begin() + static_cast<std::ptrdiff_t>(count);
      batch.assign(std::make_move_iterator(received_.begin()), std::make_move_iterator(end));
      received_.erase(received_.begin(), end);
      if (batch.empty() && !stop && read_all_) break;
    }
    if (stop) {
      worker::v1::DaemonResponse response;
      *response.mutable_stop() = *stop;
      // A broken line is the reader's to see; what was received is passed on all the same.
      stream_.Write(response);
    }
    if (!batch.empty() && !PassOn(batch)) break;
  }
  absl::MutexLock lock(&mutex_);
  answering_ = false;
}

bool WorkerConnection::PassOn(const std::vector<worker::v1::Report>& batch) {
  const absl::StatusOr<int64_t> committed =
      reports_.OnReports(hello_.attempt_uid(), hello_.fencing_token(), batch);
  if (!committed.ok()) {
    Log(LogLevel::kWarn, "worker.reports_refused",
        {{"attempt", hello_.attempt_uid()}, {"error", std::string(committed.status().message())}});
    // The worker dials again, hears why in the answer to its hello, or sends the reports again.
    Cancel();
    return false;
  }
  worker::v1::DaemonResponse response;
  response.set_acknowledged(*committed);
  stream_.Write(response);
  return true;
}

}  // namespace traind::supervisor
