#include "worker/model/rotary_embedding.h"

#include <cmath>

namespace traind {

RotaryEmbedding::RotaryEmbedding(int64_t head_dim, double theta) : head_dim_(head_dim) {
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(head_dim);
    inverse_frequencies_.push_back(1.0f / std::pow(static_cast<float>(theta), exponent));
  }
}

void RotaryEmbedding::EnsurePositions(int64_t positions) {
  const int64_t half = head_dim_ / 2;
  for (int64_t position = static_cast<int64_t>(cosines_.size()) / half; position < positions;
       ++position) {
    for (const float frequency : inverse_frequencies_) {
      const float angle = static_cast<float>(position) * frequency;
      cosines_.push_back(std::cos(angle));
      sines_.push_back(std::sin(angle));
    }
  }
}

}  // namespace traind
