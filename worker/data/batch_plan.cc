#include "worker/data/batch_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "worker/data/random_permutation.h"

namespace traind {
namespace {

int64_t CeilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

void RequirePositive(const char* field, int64_t value, std::vector<FieldViolation>& violations) {
  if (value > 0) return;
  violations.push_back({field, absl::StrCat("must be at least 1, but is ", value)});
}

std::vector<FieldViolation> Check(const BatchPlanOptions& options) {
  std::vector<FieldViolation> violations;
  RequirePositive("rows", options.rows, violations);
  RequirePositive("per_device_train_batch_size", options.per_device_train_batch_size, violations);
  RequirePositive("gradient_accumulation_steps", options.gradient_accumulation_steps, violations);
  RequirePositive("world_size", options.world_size, violations);
  if (options.rows >= kMaxPermutationSize) {
    violations.push_back({"rows", absl::StrCat("must be fewer than ", kMaxPermutationSize)});
  }
  if (options.rank < 0 || options.rank >= options.world_size) {
    violations.push_back(
        {"rank", absl::StrCat("must be in [0, world_size), but is ", options.rank)});
  }
  if (options.max_steps <= 0 && !(options.num_train_epochs > 0 && options.num_train_epochs < 1e9)) {
    violations.push_back({"num_train_epochs",
                          absl::StrCat("must be in (0, 1e9), but is ", options.num_train_epochs)});
  }
  return violations;
}

}  // namespace

absl::StatusOr<BatchPlan> BatchPlan::Create(const BatchPlanOptions& options) {
  const std::vector<FieldViolation> violations = Check(options);
  if (!violations.empty()) return FieldErrors(violations);
  return BatchPlan(options);
}

BatchPlan::BatchPlan(const BatchPlanOptions& options) : options_(options) {
  const int64_t batches = CeilDivide(options.rows, options.per_device_train_batch_size);
  micro_batches_per_epoch_ = CeilDivide(batches, options.world_size);
  steps_per_epoch_ = CeilDivide(micro_batches_per_epoch_, options.gradient_accumulation_steps);
  total_steps_ = options.max_steps > 0
                     ? options.max_steps
                     : static_cast<int64_t>(std::ceil(options.num_train_epochs *
                                                      static_cast<double>(steps_per_epoch_)));
}

UpdatePlan BatchPlan::UpdateAt(int64_t step) {
  UpdatePlan update;
  update.epoch = step / steps_per_epoch_;
  const std::vector<int64_t>& order = OrderOf(update.epoch);
  const int64_t first = (step % steps_per_epoch_) * options_.gradient_accumulation_steps;
  const int64_t last =
      std::min(first + options_.gradient_accumulation_steps, micro_batches_per_epoch_);
  for (int64_t round = first; round < last; ++round) {
    update.micro_batches.push_back(RowsOf(order, round * options_.world_size + options_.rank));
  }
  return update;
}

double BatchPlan::EpochAt(int64_t updates) const {
  const int64_t whole = updates / steps_per_epoch_;
  const int64_t micro_batches =
      std::min((updates % steps_per_epoch_) * options_.gradient_accumulation_steps,
               micro_batches_per_epoch_);
  return static_cast<double>(whole) +
         static_cast<double>(micro_batches) / static_cast<double>(micro_batches_per_epoch_);
}

const std::vector<int64_t>& BatchPlan::OrderOf(int64_t epoch) {
  if (epoch == cached_epoch_) return cached_order_;
  if (options_.sequential_rows) {
    cached_order_.resize(static_cast<size_t>(options_.rows));
    std::iota(cached_order_.begin(), cached_order_.end(), int64_t{0});
  } else {
    cached_order_ = RandomPermutation(
        options_.rows, static_cast<uint64_t>(options_.data_seed) + static_cast<uint64_t>(epoch));
  }
  cached_epoch_ = epoch;
  return cached_order_;
}

MicroBatch BatchPlan::RowsOf(const std::vector<int64_t>& order, int64_t global_batch) const {
  const int64_t size = options_.per_device_train_batch_size;
  const int64_t begin = std::min(global_batch * size, options_.rows);
  const int64_t end = std::min(begin + size, options_.rows);
  return MicroBatch(order.begin() + begin, order.begin() + end);
}

int64_t WindowDenominator(const std::vector<PackedBatch>& window, LossDenominator denominator) {
  int64_t sum = 0;
  for (const PackedBatch& batch : window) {
    switch (denominator) {
      case LossDenominator::kHf:
        sum += batch.unshifted_labels;
        break;
      case LossDenominator::kShifted:
        sum += batch.supervised_tokens;
        break;
    }
  }
  return sum;
}

}  // namespace traind
