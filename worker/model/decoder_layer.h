// The Llama block, forward and backward.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/device/arena.h"
#include "worker/device/cpu/attention.h"
#include "worker/device/cpu/layer_kernels.h"
#include "worker/lora/lora_linear.h"
#include "worker/model/weight_source.h"

namespace traind {

// What all layers of one pass share.
struct PassContext {
  int64_t tokens = 0;
  absl::Span<const int32_t> row_offsets;  // As in PackedBatch.
  const int32_t* position_ids = nullptr;  // [tokens]
  cpu::RotaryTable rotary;
  LoraDropout dropout;
};

// What a layer's forward leaves for its backward. Layers that need no backward share one.
struct LayerActivations {
  float* x = nullptr;            // [tokens, hidden]; the layer's input.
  float* qkv = nullptr;          // [tokens, q | k | v] after RoPE.
  float* attention = nullptr;    // [tokens, query_size]
  float* log_sum_exp = nullptr;  // [tokens, query_heads]
  float* middle = nullptr;       // [tokens, hidden]; x plus the attention's part.
  float* gate_up = nullptr;      // [tokens, 2 * intermediate]; backward overwrites it.
  float* low_qkv = nullptr;      // What LoraLinear leaves; [tokens, low_size()] each.
  float* low_o = nullptr;
  float* low_gate_up = nullptr;
  float* low_down = nullptr;
};

// Memory that a layer uses while it works; shared by all layers.
struct LayerScratch {
  float* normed = nullptr;  // [tokens, hidden]
  float* inner = nullptr;   // [tokens, intermediate]; SwiGLU's output.
  // Backward only:
  float* d_x = nullptr;          // [tokens, hidden]; the gradient that runs down the layers.
  float* d_wide = nullptr;       // [tokens, max(hidden, intermediate)]
  float* d_qkv = nullptr;        // [tokens, qkv_size]
  float* d_attention = nullptr;  // [tokens, query_size]
  LoraScratch lora;
};

// The products of a layer in the order of the forward pass.
enum class LayerStage { kNone, kQkv, kOutput, kGateUp, kDown };

// One layer: RMSNorm, q/k/v with RoPE, causal attention, output projection and residual; RMSNorm,
// gate/up, SwiGLU, down projection and residual. Owns its frozen weights in fp32. Lives on the
// trainer's thread.
class DecoderLayer {
 public:
  // Reads layer `index`. `adapter` is borrowed and may be null. Errors: MODEL_INVALID.
  static absl::StatusOr<std::unique_ptr<DecoderLayer>> Load(const WeightSource& weights,
                                                            int64_t index, Adapter* adapter);

  // The first product that has an adapter; kNone if no product has.
  LayerStage FirstAdapted() const;

  // Numbers per token of the widest `low` of LoraLinear in this layer.
  int64_t LargestLowSize() const;

  // Takes the memory of one layer's activations for `tokens` tokens, but for x.
  void LayOut(Arena& arena, int64_t tokens, LayerActivations& activations) const;
  void LayOutForward(Arena& arena, int64_t tokens, LayerScratch& scratch) const;
  // All but scratch.lora, which has to fit the widest layer.
  void LayOutBackward(Arena& arena, int64_t tokens, LayerScratch& scratch) const;
  // For dropout; only if the pass has any.
  void LayOutDropout(Arena& arena, int64_t tokens, LayerScratch& scratch) const;

  // Writes the layer's output to `out`, which may be activations.x if no backward follows.
  void Forward(const PassContext& pass, const LayerScratch& scratch,
               const LayerActivations& activations, float* out) const;

  // Turns scratch.d_x from the gradient of the output into that of x and adds the adapters'
  // gradients. `last` is the lowest product whose adapter needs a gradient: nothing below it is
  // computed, and d_x is then of no meaning. kNone: everything, down to x.
  void Backward(const PassContext& pass, const LayerScratch& scratch,
                const LayerActivations& activations, LayerStage last) const;

  // Keys and values of one sequence; grows by the pass's tokens.
  struct Cache {
    std::vector<float> keys;  // [tokens so far, key_value_size]
    std::vector<float> values;
  };

  // Forward of the next tokens of one sequence, whose earlier keys and values are in `cache`.
  void ForwardCached(const PassContext& pass, const LayerScratch& scratch,
                     const LayerActivations& activations, Cache& cache, float* out) const;

 private:
  struct Weights;
  DecoderLayer(const ModelConfig& config, Weights weights, Adapter* adapter,
               const std::string& prefix);

  cpu::RmsNorm InputNorm() const;
  cpu::RmsNorm MiddleNorm() const;
  void ProjectQkv(const PassContext& pass, const LayerScratch& scratch,
                  const LayerActivations& activations) const;
  void FinishForward(const PassContext& pass, const LayerScratch& scratch,
                     const LayerActivations& activations, float* out) const;
  bool BackwardMlp(const PassContext& pass, const LayerScratch& scratch,
                   const LayerActivations& activations, LayerStage last) const;
  void BackwardAttention(const PassContext& pass, const LayerScratch& scratch,
                         const LayerActivations& activations, LayerStage last) const;

  int64_t hidden_;
  int64_t intermediate_;
  float epsilon_;
  cpu::AttentionShape attention_;
  std::vector<float> input_norm_;
  std::vector<float> middle_norm_;
  LoraLinear qkv_;
  LoraLinear output_;
  LoraLinear gate_up_;
  LoraLinear down_;
};

}  // namespace traind
