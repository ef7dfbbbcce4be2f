#include "worker/device/cpu/optimizer_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "worker/device/cpu/parallel.h"

namespace traind::cpu {
namespace {

constexpr int64_t kBlock = 4096;

double BlockSum(const float* values, int64_t size) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return sum;
}

}  // namespace

double SumOfSquares(absl::Span<const float> values) {
  const int64_t size = static_cast<int64_t>(values.size());
  // One sum per block, added in order: an OpenMP reduction would add in the order of arrival.
  std::vector<double> sums(static_cast<size_t>((size + kBlock - 1) / kBlock));
#pragma omp parallel for schedule(static) if (WorthThreads(size))
  for (int64_t block = 0; block < static_cast<int64_t>(sums.size()); ++block) {
    const int64_t begin = block * kBlock;
    sums[static_cast<size_t>(block)] =
        BlockSum(values.data() + begin, std::min(kBlock, size - begin));
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void AdamW(const AdamWConstants& constants, absl::Span<const float> gradients,
           absl::Span<float> parameters, absl::Span<float> exp_avg, absl::Span<float> exp_avg_sq) {
  const AdamWConstants k = constants;
  const float* g = gradients.data();
  float* p = parameters.data();
  float* m = exp_avg.data();
  float* v = exp_avg_sq.data();
  const int64_t size = static_cast<int64_t>(parameters.size());
#pragma omp parallel for simd schedule(static) if (parallel : WorthThreads(16 * size))
  for (int64_t i = 0; i < size; ++i) {
    const float gradient = g[i] * k.gradient_scale;
    m[i] = k.beta1 * m[i] + k.one_minus_beta1 * gradient;
    v[i] = k.beta2 * v[i] + k.one_minus_beta2 * gradient * gradient;
    p[i] = p[i] * k.decay -
           k.step_size * m[i] / (std::sqrt(v[i]) * k.inverse_sqrt_correction2 + k.epsilon);
  }
}

}  // namespace traind::cpu
