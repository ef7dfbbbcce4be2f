// AdamW and gradient clipping over the adapter's flat buffers.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "worker/lora/adapter.h"

namespace traind {

// Names and defaults as in torch.optim.AdamW and TrainingArguments.
struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;   // Decoupled.
  double max_grad_norm = 1;  // Largest L2 norm of an update's gradient; 0: no clipping.
};

// What one update did.
struct UpdateResult {
  double grad_norm = 0;  // Before clipping.
  bool applied = false;  // False: the norm was not finite, and nothing was changed.
};

// L2 norm over all numbers, summed in double in a fixed order.
double GradientNorm(absl::Span<const float> gradients);

// min(1, max_grad_norm / (grad_norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 if
// max_grad_norm is 0.
double ClipCoefficient(double grad_norm, double max_grad_norm);

// One update from the adapter's gradients, in PyTorch's form:
//   p *= 1 - lr * weight_decay;  m, v <- moments of the clipped gradient
//   p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// `update` is t, 1-based. Parameters and moments stay bit for bit as they are if the norm is NaN
// or infinite. Gradients are left as they are: the caller zeroes them.
UpdateResult AdamWUpdate(Adapter& adapter, const AdamWOptions& options, double learning_rate,
                         int64_t update);

}  // namespace traind
