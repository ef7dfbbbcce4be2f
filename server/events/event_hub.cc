#include "server/events/event_hub.h"

#include <algorithm>

namespace traind::events {
namespace {

// Far more jobs than run at one time.
constexpr size_t kMaxJobs = 10'000;

}  // namespace

EventHub::JobState& EventHub::Find(const std::string& job_uid, bool* known) {
  auto found = jobs_.find(job_uid);
  *known = found != jobs_.end();
  if (*known) return found->second;
  if (jobs_.size() >= kMaxJobs) {
    absl::erase_if(jobs_, [](const auto& entry) { return entry.second.waiters == 0; });
  }
  return jobs_[job_uid];
}

void EventHub::Publish(const std::string& job_uid, int64_t sequence) {
  absl::MutexLock lock(&mutex_);
  bool known = false;
  JobState& job = Find(job_uid, &known);
  job.newest = std::max(job.newest, sequence);
}

void EventHub::Forget(const std::string& job_uid) {
  absl::MutexLock lock(&mutex_);
  bool known = false;
  Find(job_uid, &known).deleted = true;
}

void EventHub::Stop() {
  absl::MutexLock lock(&mutex_);
  stopping_ = true;
}

EventHub::Wake EventHub::Wait(const std::string& job_uid, int64_t after, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return Wake::kStopping;
  bool known = false;
  JobState& job = Find(job_uid, &known);
  if (!known) {
    // Anything may have happened before; from now on nothing is missed.
    job.newest = after;
    return Wake::kNewEvents;
  }
  ++job.waiters;
  const auto is_over = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || job.deleted || job.newest > after;
  };
  const bool over = mutex_.AwaitWithTimeout(absl::Condition(&is_over), timeout);
  --job.waiters;
  if (!over) return Wake::kTimeout;
  if (stopping_) return Wake::kStopping;
  return job.deleted ? Wake::kDeleted : Wake::kNewEvents;
}

size_t EventHub::SizeForTest() {
  absl::MutexLock lock(&mutex_);
  return jobs_.size();
}

}  // namespace traind::events
