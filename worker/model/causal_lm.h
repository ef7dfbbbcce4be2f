// A decoder with a frozen base and a trainable adapter: forward, backward, greedy answers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/data/packed_batch.h"
#include "worker/lora/adapter.h"
#include "worker/model/weight_source.h"

namespace traind {

// The loss of one micro-batch.
struct LossSum {
  double nll_sum = 0;  // Sum of the negative log-likelihoods of all targets.
  int64_t targets = 0;
  std::vector<double> row_nll_sum;   // [rows]; for evaluation.
  std::vector<int64_t> row_targets;  // [rows]
};

// Where a micro-batch stands in the run, so that dropout can be drawn again instead of stored.
struct DropoutKey {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint64_t micro_batch = 0;
};

// Lives on the trainer's thread. Computes in fp32 on the CPU. Activations live in one arena that
// grows to the largest micro-batch and is used again.
class CausalLm {
 public:
  // Reads the base. `adapter` is borrowed and outlives the model; null: the bare base.
  static absl::StatusOr<std::unique_ptr<CausalLm>> Load(const WeightSource& weights,
                                                        Adapter* adapter);
  virtual ~CausalLm() = default;

  virtual const ModelConfig& config() const = 0;

  // Adds the gradient of nll_sum / denominator to the adapter's gradients.
  virtual absl::StatusOr<LossSum> ForwardBackward(const PackedBatch& batch, double denominator,
                                                  const DropoutKey& dropout) = 0;

  // The loss alone, without dropout.
  virtual absl::StatusOr<LossSum> Evaluate(const PackedBatch& batch) = 0;

  // Logits of every position, [tokens, vocab_size]; for tests and parity, not for training.
  virtual absl::StatusOr<std::vector<float>> Logits(const PackedBatch& batch) = 0;

  // Greedy continuation until an id of `stop_ids` (which is left out) or `max_new_tokens`.
  virtual absl::StatusOr<std::vector<int32_t>> GenerateGreedy(
      const std::vector<int32_t>& prompt, int64_t max_new_tokens,
      const std::vector<int32_t>& stop_ids) = 0;
};

}  // namespace traind
