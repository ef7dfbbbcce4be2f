// The LoRA linear layer, forward and backward.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/device/cpu/dropout.h"
#include "worker/lora/adapter.h"

namespace traind {

// The dropout of one pass. Each adapted module draws its own mask from the key.
struct LoraDropout {
  uint64_t key = 0;
  double probability = 0;  // 0 in evaluation.
};

// Memory that linear layers use between their steps; nothing in it outlives a call.
struct LoraScratch {
  float* wide = nullptr;   // [tokens, largest in_features]; read only with dropout.
  float* d_low = nullptr;  // [tokens, largest low_size()]
};

// One frozen weight W [out_features, in_features] made of the rows of one or more linear layers
// that read the same input (such as q, k and v), each with an adapter of its own or none:
//   y_part = x W_part^T + scaling * (dropout(x) A^T) B^T
// Owns W. Thread-compatible.
class LoraLinear {
 public:
  // One layer of the base, in the order of its rows in W.
  struct Part {
    std::string name;  // `model.layers.0.self_attn.q_proj`.
    int64_t out_features = 0;
  };

  // `adapter` is borrowed and may be null. `weight` holds the parts' rows one after the other.
  LoraLinear(int64_t in_features, std::vector<float> weight, const std::vector<Part>& parts,
             Adapter* adapter);

  int64_t in_features() const { return in_features_; }
  int64_t out_features() const { return out_features_; }
  bool has_adapter() const { return !adapted_.empty(); }
  // Numbers per token that Forward leaves for Backward.
  int64_t low_size() const;

  struct Input {
    const float* x = nullptr;  // [tokens, in_features]
    int64_t tokens = 0;
    LoraDropout dropout;
  };

  // y [tokens, out_features] = (y if `accumulate`) + the formula above;
  // low [tokens, low_size()] = scaling * dropout(x) A^T of the adapted parts side by side.
  void Forward(const Input& input, const LoraScratch& scratch, bool accumulate, float* low,
               float* y) const;

  // What Backward is given.
  struct OutputGradient {
    const float* dy = nullptr;   // [tokens, out_features]
    const float* low = nullptr;  // From Forward.
  };

  // Adds the gradients of A and B to the adapter's, and writes dx [tokens, in_features] unless it
  // is null. W has no gradient. The input is the same as in Forward.
  void Backward(const Input& input, const OutputGradient& output, const LoraScratch& scratch,
                float* dx) const;

 private:
  // A part that has an adapter.
  struct Adapted {
    LoraModule module;
    uint64_t index = 0;      // In the layout; tells the masks apart.
    int64_t first_row = 0;   // In W.
    int64_t low_column = 0;  // In `low`.
  };

  // Neighbours in `adapted_` whose A's are one matrix [parts * r, in_features].
  struct Run {
    const Adapted* first = nullptr;
    int64_t parts = 0;
  };

  std::vector<Run> RunsFor(const LoraDropout& dropout) const;
  const float* DroppedInput(const Input& input, const Run& run, const LoraScratch& scratch) const;
  void AddLowGradients(const Input& input, const OutputGradient& output, float* d_low) const;
  void AddInputGradient(const Input& input, const Run& run, const LoraScratch& scratch,
                        float* dx) const;

  int64_t in_features_;
  int64_t out_features_ = 0;
  int64_t rank_ = 0;
  float scaling_ = 0;
  std::vector<float> weight_;
  std::vector<Adapted> adapted_;
  Adapter* adapter_;
};

}  // namespace traind
