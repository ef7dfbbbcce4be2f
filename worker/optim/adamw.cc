#include "worker/optim/adamw.h"

#include <algorithm>
#include <cmath>

#include "worker/device/cpu/optimizer_kernels.h"

namespace traind {

double GradientNorm(absl::Span<const float> gradients) {
  return std::sqrt(cpu::SumOfSquares(gradients));
}

double ClipCoefficient(double grad_norm, double max_grad_norm) {
  if (max_grad_norm <= 0) return 1;
  return std::min(1.0, max_grad_norm / (grad_norm + 1e-6));
}

UpdateResult AdamWUpdate(Adapter& adapter, const AdamWOptions& options, double learning_rate,
                         int64_t update) {
  UpdateResult result;
  result.grad_norm = GradientNorm(adapter.gradients());
  if (!std::isfinite(result.grad_norm)) return result;
  const double t = static_cast<double>(update);
  cpu::AdamWConstants constants;
  constants.gradient_scale =
      static_cast<float>(ClipCoefficient(result.grad_norm, options.max_grad_norm));
  constants.beta1 = static_cast<float>(options.beta1);
  constants.beta2 = static_cast<float>(options.beta2);
  constants.one_minus_beta1 = static_cast<float>(1 - options.beta1);
  constants.one_minus_beta2 = static_cast<float>(1 - options.beta2);
  constants.decay = static_cast<float>(1 - learning_rate * options.weight_decay);
  constants.step_size = static_cast<float>(learning_rate / (1 - std::pow(options.beta1, t)));
  constants.inverse_sqrt_correction2 =
      static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
  constants.epsilon = static_cast<float>(options.epsilon);
  cpu::AdamW(constants, adapter.gradients(), adapter.parameters(), adapter.exp_avg(),
             adapter.exp_avg_sq());
  result.applied = true;
  return result;
}

}  // namespace traind
