// The one place that says whether a run shall end early.
#pragma once

#include <atomic>

namespace traind {

// From mild to strong.
enum class StopKind : int {
  kNone = 0,
  kStopWithCheckpoint = 1,
  kStop = 2,
  // Another attempt owns the job now: nothing may be written any more.
  kFenced = 3,
};

// Set by the daemon's connection and by signals, read by the trainer between micro-batches.
// Thread-safe.
class StopFlag {
 public:
  // A milder request never replaces a stronger one.
  void Request(StopKind kind);

  StopKind kind() const { return kind_.load(std::memory_order_acquire); }

 private:
  std::atomic<StopKind> kind_{StopKind::kNone};
};

}  // namespace traind
