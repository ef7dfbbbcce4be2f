// The loss of a causal language model without its full logits.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/device/arena.h"
#include "worker/device/cpu/layer_kernels.h"

namespace traind {

// The last part of the model: logits = rms_norm(x) W^T.
struct LmHead {
  cpu::RmsNorm norm;              // Of size hidden_size.
  const float* weight = nullptr;  // W [vocab_size, hidden_size]; frozen, tied or not.
  int64_t vocab_size = 0;
};

// Positions that are trained, and the id that each has to predict.
struct SupervisedTargets {
  std::vector<int32_t> positions;  // Ascending.
  std::vector<int32_t> ids;        // Parallel to positions.

  int64_t size() const { return static_cast<int64_t>(positions.size()); }
};

// Norm, head and cross-entropy over the supervised positions alone, a few hundred rows at a time.
// The head is frozen, so the gradient of the hidden states is made at once from the chunk's
// logits, which nothing needs afterwards. Lives on the trainer's thread.
class ChunkedCrossEntropy {
 public:
  explicit ChunkedCrossEntropy(const LmHead& head);

  // Takes the buffers for `targets` supervised positions.
  void LayOut(Arena& arena, int64_t targets);

  // nll[i] = negative log-likelihood of targets.ids[i], given the hidden states x [tokens, hidden].
  std::vector<double> Evaluate(const float* x, const SupervisedTargets& targets);

  // The same; adds the gradient of gradient_scale * sum(nll) to dx [tokens, hidden].
  std::vector<double> ForwardBackward(const float* x, const SupervisedTargets& targets,
                                      float gradient_scale, float* dx);

 private:
  struct Chunk {
    const int32_t* positions = nullptr;
    int64_t rows = 0;
  };
  void ComputeLogits(const float* x, const Chunk& chunk);
  void AddHiddenGradient(const Chunk& chunk, float* dx);

  LmHead head_;
  int64_t chunk_rows_;
  float* hidden_ = nullptr;    // [chunk_rows, hidden]; the chunk's rows of x.
  float* normed_ = nullptr;    // [chunk_rows, hidden]; later its gradient.
  float* d_hidden_ = nullptr;  // [chunk_rows, hidden]
  float* logits_ = nullptr;    // [chunk_rows, vocab_size]; later their gradient.
};

}  // namespace traind
