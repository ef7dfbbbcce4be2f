// Which rows are trained in which update: a pure function of the run's settings, so that a run
// that resumes after update N needs to know nothing but N.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/packed_batch.h"

namespace traind {

struct BatchPlanOptions {
  int64_t rows = 0;                         // Rows of the data set; > 0.
  int64_t per_device_train_batch_size = 8;  // Rows in one micro-batch; > 0.
  int64_t gradient_accumulation_steps = 1;  // Micro-batches in one update; > 0.
  double num_train_epochs = 3;              // > 0; read if max_steps is not positive.
  int64_t max_steps = -1;
  int64_t data_seed = 42;
  bool sequential_rows = false;  // File order in every epoch instead of a shuffle.
  int64_t world_size = 1;        // Ranks that share the rows.
  int64_t rank = 0;
};

// Row numbers of one micro-batch, in order.
using MicroBatch = std::vector<int64_t>;

// What is done between two optimizer updates.
struct UpdatePlan {
  int64_t epoch = 0;                      // 0-based.
  std::vector<MicroBatch> micro_batches;  // Fewer than asked for at the end of an epoch.
};

// The order of all updates, as Hugging Face's Trainer makes it: epoch e is shuffled with
// torch.randperm seeded with data_seed + e; micro-batches are dealt to the ranks in turn; the last
// window of an epoch is an update of its own, however short. A rank for which the last round has
// no rows left gets an empty micro-batch (Accelerate repeats rows there).
// Thread-compatible: the order of the last epoch asked for is kept.
class BatchPlan {
 public:
  // Errors: INVALID_ARGUMENT (INVALID_FIELD), naming the option.
  static absl::StatusOr<BatchPlan> Create(const BatchPlanOptions& options);

  int64_t micro_batches_per_epoch() const { return micro_batches_per_epoch_; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  // Updates of the whole run; the learning-rate schedule and the progress use the same number.
  int64_t total_steps() const { return total_steps_; }

  // What update number `step` (0-based) trains on. REQUIRES: 0 <= step < total_steps().
  UpdatePlan UpdateAt(int64_t step);

  // Passes over the data after `updates` updates, such as 1.4, counted in micro-batches as
  // Trainer's `epoch` is.
  double EpochAt(int64_t updates) const;

 private:
  explicit BatchPlan(const BatchPlanOptions& options);
  const std::vector<int64_t>& OrderOf(int64_t epoch);
  MicroBatch RowsOf(const std::vector<int64_t>& order, int64_t global_batch) const;

  BatchPlanOptions options_;
  int64_t micro_batches_per_epoch_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
  int64_t cached_epoch_ = -1;
  std::vector<int64_t> cached_order_;
};

// What the loss of an update is divided by.
enum class LossDenominator {
  kHf,       // Labels before the shift, as Transformers' num_items_in_batch.
  kShifted,  // Tokens that are predicted.
};

// The divisor for all micro-batches of one update together; 0 if nothing is trained in it.
int64_t WindowDenominator(const std::vector<PackedBatch>& window, LossDenominator denominator);

}  // namespace traind
