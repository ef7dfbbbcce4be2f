#include "worker/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind {
namespace {

double Ratio(int64_t numerator, int64_t denominator) {
  return static_cast<double>(numerator) / static_cast<double>(std::max<int64_t>(1, denominator));
}

// Factor after the warm-up.
double Decay(LrSchedulerType type, int64_t step, int64_t warmup_steps, int64_t total_steps) {
  switch (type) {
    case LrSchedulerType::kLinear:
      return std::max(0.0, Ratio(total_steps - step, total_steps - warmup_steps));
    case LrSchedulerType::kCosine: {
      const double progress = Ratio(step - warmup_steps, total_steps - warmup_steps);
      return std::max(0.0, 0.5 * (1 + std::cos(M_PI * progress)));
    }
    case LrSchedulerType::kConstant:
    case LrSchedulerType::kConstantWithWarmup:
      return 1;
  }
  return 1;
}

}  // namespace

absl::StatusOr<LrSchedulerType> LrSchedulerTypeFromName(absl::string_view name) {
  if (name.empty() || name == "linear") return LrSchedulerType::kLinear;
  if (name == "cosine") return LrSchedulerType::kCosine;
  if (name == "constant") return LrSchedulerType::kConstant;
  if (name == "constant_with_warmup") return LrSchedulerType::kConstantWithWarmup;
  return FieldErrors(
      {{"training.lr_scheduler_type", absl::StrCat("is \"", name,
                                                   "\"; must be linear, cosine, constant or "
                                                   "constant_with_warmup")}});
}

int64_t WarmupSteps(int64_t total_steps, double warmup_ratio, double warmup_steps) {
  if (warmup_steps >= 1) return static_cast<int64_t>(warmup_steps);
  const double share = warmup_steps > 0 ? warmup_steps : warmup_ratio;
  return static_cast<int64_t>(std::ceil(static_cast<double>(total_steps) * share));
}

double LrSchedule::RateAt(int64_t step) const {
  if (type != LrSchedulerType::kConstant && step < warmup_steps) {
    return peak * Ratio(step, warmup_steps);
  }
  return peak * Decay(type, step, warmup_steps, total_steps);
}

}  // namespace traind
