// The CausalLm of the Llama family.
#pragma once

#include <memory>
#include <vector>

#include "worker/model/causal_lm.h"
#include "worker/model/decoder_layer.h"
#include "worker/model/rotary_embedding.h"
#include "worker/objective/chunked_cross_entropy.h"

namespace traind {

// Embeddings, decoder layers and head with explicit forward and backward. Layers below the first
// adapter have no backward and keep no activations. Lives on the trainer's thread.
class Llama : public CausalLm {
 public:
  static absl::StatusOr<std::unique_ptr<CausalLm>> Load(const WeightSource& weights,
                                                        Adapter* adapter);

  const ModelConfig& config() const override { return config_; }
  absl::StatusOr<LossSum> ForwardBackward(const PackedBatch& batch, double denominator,
                                          const DropoutKey& dropout) override;
  absl::StatusOr<LossSum> Evaluate(const PackedBatch& batch) override;
  absl::StatusOr<std::vector<float>> Logits(const PackedBatch& batch) override;
  absl::StatusOr<std::vector<int32_t>> GenerateGreedy(
      const std::vector<int32_t>& prompt, int64_t max_new_tokens,
      const std::vector<int32_t>& stop_ids) override;

 private:
  // The memory of one pass.
  struct Buffers {
    std::vector<LayerActivations> layers;
    LayerScratch scratch;
    float* final_x = nullptr;  // [tokens, hidden]; what the head reads.
  };

  enum class PassKind { kForward, kBackward };

  // The frozen weights outside the layers.
  struct Outer {
    std::vector<float> embeddings;  // [vocab, hidden]
    std::vector<float> final_norm;  // [hidden]
    std::vector<float> head;        // [vocab, hidden]; empty if tied to the embeddings.
  };

  Llama(const ModelConfig& config, Outer outer, std::vector<std::unique_ptr<DecoderLayer>> layers,
        Adapter* adapter);

  LmHead Head() const;
  bool HasDropout() const;
  absl::Status CheckBatch(const PackedBatch& batch) const;
  absl::StatusOr<Buffers> Prepare(int64_t tokens, int64_t targets, PassKind kind);
  Buffers LayOut(int64_t tokens, int64_t targets, PassKind kind);
  PassContext ContextOf(const PackedBatch& batch);
  void Embed(const std::vector<int32_t>& ids, float* x) const;
  void Forward(const PassContext& pass, const std::vector<int32_t>& ids, const Buffers& buffers);
  void Backward(const PassContext& pass, const Buffers& buffers);
  std::vector<float> HeadLogits(const float* x, int64_t rows) const;
  absl::StatusOr<int32_t> NextToken(const std::vector<int32_t>& ids, int64_t first_position,
                                    std::vector<DecoderLayer::Cache>& caches);

  ModelConfig config_;
  Outer outer_;
  std::vector<std::unique_ptr<DecoderLayer>> layers_;
  Adapter* adapter_;
  RotaryEmbedding rotary_;
  ChunkedCrossEntropy cross_entropy_;
  Arena arena_;
  size_t first_adapted_layer_;  // layers_.size() if there is none.
};

}  // namespace traind
