// Wakes watchers when a job has new events. The events themselves are read from the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/node_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace traind::events {

// Loses no wake-up: a Wait after a Publish of a greater number returns at once. Memory is bounded:
// when many jobs are known, those that nobody waits for are forgotten, which costs their watchers
// one needless look into the store. Thread-safe.
class EventHub {
 public:
  // The job's newest committed sequence number is now `sequence`. A smaller one changes nothing.
  void Publish(const std::string& job_uid, int64_t sequence);

  // The job was deleted; its watchers wake and see `deleted`.
  void Forget(const std::string& job_uid);

  // The daemon is stopping; every Wait returns at once from now on.
  void Stop();

  enum class Wake { kNewEvents, kTimeout, kDeleted, kStopping };

  // Waits until the job has an event above `after`, for at most `timeout`. Returns kNewEvents at
  // once, and only this time, for a job that the hub does not know: read the store, wait again.
  Wake Wait(const std::string& job_uid, int64_t after, absl::Duration timeout);

  // How many jobs it remembers.
  size_t SizeForTest();

 private:
  struct JobState {
    int64_t newest = 0;
    bool deleted = false;
    int waiters = 0;
  };

  // The job's state, made if it is not known; `known` tells.
  JobState& Find(const std::string& job_uid, bool* known) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  // Node map: a waiter keeps a reference to its state.
  absl::node_hash_map<std::string, JobState> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace traind::events
