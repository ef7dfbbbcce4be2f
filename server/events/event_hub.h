// Wakes watchers when a job has new events. The events themselves are read from the store.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace traind::events {

// Thread-safe.
class EventHub {
 public:
  // The job's newest committed sequence number is now `sequence`.
  void Publish(const std::string& job_uid, int64_t sequence);

  // The job was deleted; its watchers wake and see `deleted`.
  void Forget(const std::string& job_uid);

  // The daemon is stopping; every Wait returns at once from now on.
  void Stop();

  enum class Wake { kNewEvents, kTimeout, kDeleted, kStopping };

  // Waits until the job has an event above `after`, for at most `timeout`. A job that nobody
  // published yet counts as having none.
  Wake Wait(const std::string& job_uid, int64_t after, absl::Duration timeout);

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, int64_t> newest_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, bool> deleted_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace traind::events
