// Cosines and sines of rotary position embeddings.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/device/cpu/layer_kernels.h"

namespace traind {

// The default RoPE of Llama: angle(position, j) = position * theta^(-2 j / head_dim), rounded to
// fp32 where Transformers rounds. Grows with the largest position seen. Thread-compatible.
class RotaryEmbedding {
 public:
  RotaryEmbedding(int64_t head_dim, double theta);

  // Makes the table reach `positions` rows; earlier tables become invalid.
  void EnsurePositions(int64_t positions);

  cpu::RotaryTable table() const { return {cosines_.data(), sines_.data(), head_dim_}; }

 private:
  int64_t head_dim_;
  std::vector<float> inverse_frequencies_;
  std::vector<float> cosines_;  // [positions, head_dim / 2]
  std::vector<float> sines_;
};

}  // namespace traind
