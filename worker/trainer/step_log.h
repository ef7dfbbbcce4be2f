// The report of the training loss: sums over updates, and the rates that people watch.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "traind/v1/event.pb.h"
#include "worker/trainer/run_state.h"

namespace traind {

// One update, as the log sees it.
struct UpdateRecord {
  double loss = 0;  // Raw: may be NaN.
  double grad_norm = 0;
  double learning_rate = 0;  // Used in this update.
  bool applied = false;      // False: loss or gradient was not finite.
  int64_t tokens = 0;
  int64_t supervised_tokens = 0;
  absl::Duration data;
  absl::Duration forward_backward;
  absl::Duration optim;
  absl::Duration cpu;  // Processor time of all threads.

  absl::Duration total() const { return data + forward_backward + optim; }
};

// Collects updates until the next report. `pending` belongs to the run's state, so that a resumed
// run reports the same means; times start anew with the process. Lives on the trainer's thread.
class StepLog {
 public:
  // `pending` is borrowed and outlives the log.
  explicit StepLog(PendingLog* pending) : pending_(pending) {}

  // A window that had nothing to train is not added.
  void Add(const UpdateRecord& update);

  bool empty() const { return pending_->losses == 0; }

  // The report over the updates since the last one, without step, epoch and total_steps; starts
  // the next one. REQUIRES: !empty().
  v1::StepMetrics Take();

 private:
  PendingLog* pending_;
  UpdateRecord newest_;
  int64_t timed_tokens_ = 0;
  absl::Duration update_time_;
  absl::Duration cpu_time_;
};

}  // namespace traind
