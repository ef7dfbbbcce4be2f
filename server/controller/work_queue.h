// The controller's thread and what it still has to do.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/os/clock.h"

namespace traind::controller {

// One thread that runs what is posted, in order, and what is due. Thread-safe.
class WorkQueue {
 public:
  // `clock` is borrowed and outlives the queue. Nothing runs before Start.
  explicit WorkQueue(const Clock& clock) : clock_(clock) {}
  // Stop.
  ~WorkQueue();

  void Start();

  // Runs what is posted already, drops what is not due yet, and ends the thread. Work that is
  // posted later is dropped. May be called twice.
  void Stop();

  // False: stopped, and `work` is dropped.
  bool Post(std::function<void()> work);

  // Runs `work` once Clock::Now has reached `time`.
  void PostAt(absl::Time time, std::function<void()> work);

  // Runs `work` on the thread and returns its result; nullopt if the queue is stopped. Must not be
  // called on the thread.
  template <typename Work>
  std::optional<std::invoke_result_t<Work>> Run(Work work) {
    std::optional<std::invoke_result_t<Work>> result;
    absl::Notification done;
    const bool posted = Post([&] {
      result.emplace(work());
      done.Notify();
    });
    if (posted) done.WaitForNotification();
    return result;
  }

 private:
  void Loop();
  // The next piece of work, which may be nothing yet; nullopt: the end.
  std::optional<std::function<void()>> Next();
  void MoveDueWork() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> ready_ ABSL_GUARDED_BY(mutex_);
  std::multimap<absl::Time, std::function<void()>> later_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace traind::controller
