// The parts of a decoder layer that are neither matrix products nor attention. All matrices are
// fp32, row-major, without gaps unless a stride is given; rows are dealt to all OpenMP threads.
#pragma once

#include <cstdint>

namespace traind::cpu {

struct RmsNorm {
  const float* weight = nullptr;  // [size]
  int64_t size = 0;
  float epsilon = 0;
};

// y = weight * x / sqrt(mean(x^2) + epsilon), each [rows, size].
void RmsNormForward(const RmsNorm& norm, const float* x, int64_t rows, float* y);

// dx += the gradient with respect to x, given that of y.
void RmsNormBackward(const RmsNorm& norm, const float* x, const float* dy, int64_t rows, float* dx);

// Cosines and sines [positions, head_dim / 2].
struct RotaryTable {
  const float* cosines = nullptr;
  const float* sines = nullptr;
  int64_t head_dim = 0;
};

enum class RotaryDirection { kForward, kBackward };  // Backward turns by the opposite angle.

// Turns the first `heads` heads of every row of x [rows, row_stride] in place, in Transformers'
// rotate-half order: elements j and j + head_dim / 2 form a pair.
struct RotaryRows {
  float* x = nullptr;
  int64_t rows = 0;
  int64_t row_stride = 0;
  int64_t heads = 0;
  const int32_t* positions = nullptr;  // [rows]
};
void ApplyRotary(const RotaryTable& table, const RotaryRows& rows, RotaryDirection direction);

// y = silu(gate) * up, with gate_up [rows, 2 * size] = [gate | up].
void SwigluForward(const float* gate_up, int64_t rows, int64_t size, float* y);

// Replaces gate_up by its gradient, given that of y.
void SwigluBackward(const float* dy, int64_t rows, int64_t size, float* gate_up);

}  // namespace traind::cpu
