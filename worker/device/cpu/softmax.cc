#include "worker/device/cpu/softmax.h"

#include <algorithm>
#include <cmath>

#include "worker/device/cpu/fast_math.h"
#include "worker/device/cpu/parallel.h"

namespace traind::cpu {
namespace {

float Largest(const float* values, int64_t size) {
  float largest = values[0];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < size; ++i) largest = std::max(largest, values[i]);
  return largest;
}

float SumOfExp(const float* values, int64_t size, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += FastExp(values[i] - largest);
  return sum;
}

float ExpInPlace(float* values, int64_t size, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) {
    values[i] = FastExp(values[i] - largest);
    sum += values[i];
  }
  return sum;
}

void Scale(float* values, int64_t size, float factor) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) values[i] *= factor;
}

double LogSumExp(float largest, float sum) {
  return static_cast<double>(largest) + std::log(static_cast<double>(sum));
}

}  // namespace

float SoftmaxInPlace(float* values, int64_t size) {
  const float largest = Largest(values, size);
  const float sum = ExpInPlace(values, size, largest);
  Scale(values, size, 1.0f / sum);
  return largest + std::log(sum);
}

void CrossEntropy(const LogitRows& rows, double* nll) {
#pragma omp parallel for schedule(static) if (WorthThreads(32 * rows.rows * rows.vocab_size))
  for (int64_t i = 0; i < rows.rows; ++i) {
    const float* logits = rows.logits + i * rows.vocab_size;
    const float largest = Largest(logits, rows.vocab_size);
    const float sum = SumOfExp(logits, rows.vocab_size, largest);
    nll[i] = LogSumExp(largest, sum) - static_cast<double>(logits[rows.targets[i]]);
  }
}

void CrossEntropyWithGradient(const LogitRows& rows, float gradient_scale, double* nll) {
#pragma omp parallel for schedule(static) if (WorthThreads(32 * rows.rows * rows.vocab_size))
  for (int64_t i = 0; i < rows.rows; ++i) {
    float* logits = rows.logits + i * rows.vocab_size;
    const int32_t target = rows.targets[i];
    const double target_logit = static_cast<double>(logits[target]);
    const float largest = Largest(logits, rows.vocab_size);
    const float sum = ExpInPlace(logits, rows.vocab_size, largest);
    nll[i] = LogSumExp(largest, sum) - target_logit;
    Scale(logits, rows.vocab_size, gradient_scale / sum);
    logits[target] -= gradient_scale;
  }
}

}  // namespace traind::cpu
