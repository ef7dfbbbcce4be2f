// The learning rate of every update, as in Transformers' optimization.py.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace traind {

enum class LrSchedulerType { kLinear, kCosine, kConstant, kConstantWithWarmup };

// Reads `linear`, `cosine`, `constant`, `constant_with_warmup`; the empty text means `linear`.
// Errors: INVALID_ARGUMENT (INVALID_FIELD) with the names that exist.
absl::StatusOr<LrSchedulerType> LrSchedulerTypeFromName(absl::string_view name);

// Updates that warm up: `warmup_steps` if it is at least 1; read as a share of all updates if it
// is in (0, 1), as Transformers 5 does; else ceil(total_steps * warmup_ratio).
int64_t WarmupSteps(int64_t total_steps, double warmup_ratio, double warmup_steps);

// A pure function of the update's number.
struct LrSchedule {
  LrSchedulerType type = LrSchedulerType::kLinear;
  double peak = 0;           // The learning rate that the factor multiplies.
  int64_t warmup_steps = 0;  // W; not read by kConstant.
  int64_t total_steps = 0;   // T

  // The rate of update `step`, 0-based; with a warm-up that of update 0 is 0.
  //   warm-up (step < W): step / W
  //   linear: max(0, (T - step) / (T - W))
  //   cosine: max(0, (1 + cos(pi (step - W) / (T - W))) / 2)
  double RateAt(int64_t step) const;
};

}  // namespace traind
