// Loops over the flat buffers of the trainable numbers.
#pragma once

#include "absl/types/span.h"

namespace traind::cpu {

// Sum of squares in double. The same for any number of threads.
double SumOfSquares(absl::Span<const float> values);

// The numbers of one AdamW update that are the same for all parameters.
struct AdamWConstants {
  float gradient_scale = 1;  // Clipping coefficient.
  float beta1 = 0;
  float beta2 = 0;
  float one_minus_beta1 = 0;
  float one_minus_beta2 = 0;
  float decay = 1;                     // 1 - lr * weight_decay
  float step_size = 0;                 // lr / (1 - beta1^t)
  float inverse_sqrt_correction2 = 0;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

// One pass over all four buffers, which are of the same size.
void AdamW(const AdamWConstants& constants, absl::Span<const float> gradients,
           absl::Span<float> parameters, absl::Span<float> exp_avg, absl::Span<float> exp_avg_sq);

}  // namespace traind::cpu
