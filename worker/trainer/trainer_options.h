// Settings of the training loop.
#pragma once

#include <cstdint>
#include <string>

#include "worker/data/batch_plan.h"
#include "worker/optim/adamw.h"
#include "worker/optim/lr_schedule.h"

namespace traind {

// When something is done again, as in TrainingArguments.
enum class IntervalStrategy { kNo, kSteps, kEpoch };

struct TrainerOptions {
  std::string job_name;  // `jobs/{job}`; names checkpoints.
  AdamWOptions optimizer;
  LrSchedule schedule;
  LossDenominator loss_denominator = LossDenominator::kHf;
  uint64_t seed = 42;  // Of dropout.
  int64_t per_device_eval_batch_size = 8;
  int64_t logging_steps = 1;
  // kNo: no evaluation at all. Else also before the first and after the last update.
  IntervalStrategy eval_strategy = IntervalStrategy::kEpoch;
  int64_t eval_steps = 1;  // With kSteps.
  // kNo: only when a stop asks for a checkpoint. Else also after the last update.
  IntervalStrategy save_strategy = IntervalStrategy::kEpoch;
  int64_t save_steps = 500;  // With kSteps.
  // The run fails at this many updates in a row whose loss or gradient is not finite.
  int64_t max_nonfinite_in_a_row = 3;
};

}  // namespace traind
