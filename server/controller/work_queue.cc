#include "server/controller/work_queue.h"

namespace traind::controller {
namespace {

// The clock may be a test's, so it is looked at instead of slept for; only while something waits
// for its time.
constexpr absl::Duration kClockInterval = absl::Milliseconds(200);

}  // namespace

WorkQueue::~WorkQueue() { Stop(); }

void WorkQueue::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void WorkQueue::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  // Somebody may wait for what was posted even if the thread was never started.
  if (thread_.joinable())
    thread_.join();
  else
    Loop();
}

bool WorkQueue::Post(std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return false;
  ready_.push_back(std::move(work));
  return true;
}

void WorkQueue::PostAt(absl::Time time, std::function<void()> work) {
  absl::MutexLock lock(&mutex_);
  later_.emplace(time, std::move(work));
}

void WorkQueue::Loop() {
  while (std::optional<std::function<void()>> work = Next()) {
    if (*work) (*work)();
  }
}

std::optional<std::function<void()>> WorkQueue::Next() {
  absl::MutexLock lock(&mutex_);
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !ready_.empty() || !later_.empty();
  };
  mutex_.Await(absl::Condition(&has_work));
  MoveDueWork();
  if (ready_.empty() && stopping_) return std::nullopt;
  if (ready_.empty()) {
    const auto is_ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || !ready_.empty();
    };
    mutex_.AwaitWithTimeout(absl::Condition(&is_ready), kClockInterval);
    return std::function<void()>();
  }
  std::function<void()> work = std::move(ready_.front());
  ready_.pop_front();
  return work;
}

void WorkQueue::MoveDueWork() {
  const absl::Time now = clock_.Now();
  while (!later_.empty() && later_.begin()->first <= now) {
    ready_.push_back(std::move(later_.begin()->second));
    later_.erase(later_.begin());
  }
}

}  // namespace traind::controller
