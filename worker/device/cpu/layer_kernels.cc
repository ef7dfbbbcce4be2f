#include "worker/device/cpu/layer_kernels.h"

#include <cmath>

#include "worker/device/cpu/fast_math.h"
#include "worker/device/cpu/parallel.h"

namespace traind::cpu {
namespace {

float SumOfProducts(const float* x, const float* y, int64_t size) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += x[i] * y[i];
  return sum;
}

float InverseRms(const RmsNorm& norm, const float* x) {
  const float mean = SumOfProducts(x, x, norm.size) / static_cast<float>(norm.size);
  return 1.0f / std::sqrt(mean + norm.epsilon);
}

float Sigmoid(float x) { return 1.0f / (1.0f + FastExp(-x)); }

}  // namespace

void RmsNormForward(const RmsNorm& norm, const float* x, int64_t rows, float* y) {
#pragma omp parallel for schedule(static) if (WorthThreads(8 * rows * norm.size))
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * norm.size;
    float* out = y + row * norm.size;
    const float scale = InverseRms(norm, in);
#pragma omp simd
    for (int64_t i = 0; i < norm.size; ++i) out[i] = norm.weight[i] * (in[i] * scale);
  }
}

void RmsNormBackward(const RmsNorm& norm, const float* x, const float* dy, int64_t rows,
                     float* dx) {
#pragma omp parallel for schedule(static) if (WorthThreads(8 * rows * norm.size))
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x + row * norm.size;
    const float* gradient = dy + row * norm.size;
    float* out = dx + row * norm.size;
    const float scale = InverseRms(norm, in);
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < norm.size; ++i) dot += in[i] * gradient[i] * norm.weight[i];
    const float correction = dot * scale * scale * scale / static_cast<float>(norm.size);
#pragma omp simd
    for (int64_t i = 0; i < norm.size; ++i) {
      out[i] += scale * norm.weight[i] * gradient[i] - correction * in[i];
    }
  }
}

void ApplyRotary(const RotaryTable& table, const RotaryRows& rows, RotaryDirection direction) {
  const int64_t half = table.head_dim / 2;
  const float sign = direction == RotaryDirection::kForward ? 1.0f : -1.0f;
#pragma omp parallel for schedule( \
        static) if (WorthThreads(8 * rows.rows * rows.heads * table.head_dim))
  for (int64_t row = 0; row < rows.rows; ++row) {
    const float* cosines = table.cosines + rows.positions[row] * half;
    const float* sines = table.sines + rows.positions[row] * half;
    float* head = rows.x + row * rows.row_stride;
    for (int64_t k = 0; k < rows.heads; ++k, head += table.head_dim) {
#pragma omp simd
      for (int64_t j = 0; j < half; ++j) {
        const float first = head[j];
        const float second = head[j + half];
        const float sine = sines[j] * sign;
        head[j] = first * cosines[j] - second * sine;
        head[j + half] = second * cosines[j] + first * sine;
      }
    }
  }
}

void SwigluForward(const float* gate_up, int64_t rows, int64_t size, float* y) {
#pragma omp parallel for schedule(static) if (WorthThreads(32 * rows * size))
  for (int64_t row = 0; row < rows; ++row) {
    const float* gate = gate_up + row * 2 * size;
    const float* up = gate + size;
    float* out = y + row * size;
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) out[i] = gate[i] * Sigmoid(gate[i]) * up[i];
  }
}

void SwigluBackward(const float* dy, int64_t rows, int64_t size, float* gate_up) {
#pragma omp parallel for schedule(static) if (WorthThreads(32 * rows * size))
  for (int64_t row = 0; row < rows; ++row) {
    float* gate = gate_up + row * 2 * size;
    float* up = gate + size;
    const float* gradient = dy + row * size;
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      const float sigmoid = Sigmoid(gate[i]);
      const float silu = gate[i] * sigmoid;
      const float d_silu = gradient[i] * up[i];
      up[i] = gradient[i] * silu;
      gate[i] = d_silu * (sigmoid + silu * (1.0f - sigmoid));
    }
  }
}

}  // namespace traind::cpu
