// A model whose loss can be worked out by hand.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "worker/model/causal_lm.h"

namespace traind {

// An adapter with one number w; every target t adds 0.5 * (w - target(t))^2 to the loss, or just
// w with `constant_gradient`, whose gradient is 1 whatever w is. Dropout shifts w by noise that
// depends on the key alone. Records what it was asked.
class FakeCausalLm : public CausalLm {
 public:
  struct Call {
    uint64_t step = 0;
    uint64_t micro_batch = 0;
    std::vector<int32_t> first_ids;  // First token of each row.
    double denominator = 0;
    double nll_sum = 0;

    bool operator==(const Call&) const = default;
  };

  explicit FakeCausalLm(Adapter* adapter) : adapter_(adapter) {}

  static AdapterLayout Layout() {
    AdapterLayout layout;
    layout.modules.push_back({"w", 1, 1, 0, 0});
    layout.size = 1;
    return layout;
  }

  bool constant_gradient = false;
  double dropout_noise = 0;
  std::map<uint64_t, double> loss_at_step;   // Added to the loss of these steps' micro-batches.
  std::function<void(const Call&)> on_call;  // After each ForwardBackward.
  std::vector<Call> calls;
  std::vector<std::vector<int32_t>> evaluated;  // First tokens of each evaluated batch's rows.

  const ModelConfig& config() const override { return config_; }

  absl::StatusOr<LossSum> ForwardBackward(const PackedBatch& batch, double denominator,
                                          const DropoutKey& dropout) override {
    const double w = Weight() + dropout_noise * Noise(dropout);
    LossSum loss = Sum(batch, w);
    const double slope = constant_gradient ? static_cast<double>(loss.targets) : Slope(batch, w);
    adapter_->gradients()[0] += static_cast<float>(slope / denominator);
    const auto added = loss_at_step.find(dropout.step);
    if (added != loss_at_step.end()) {
      loss.nll_sum += added->second;
      adapter_->gradients()[0] += static_cast<float>(added->second);
    }
    calls.push_back(
        {dropout.step, dropout.micro_batch, FirstIds(batch), denominator, loss.nll_sum});
    if (on_call) on_call(calls.back());
    return loss;
  }

  absl::StatusOr<LossSum> Evaluate(const PackedBatch& batch) override {
    evaluated.push_back(FirstIds(batch));
    return Sum(batch, Weight());
  }

  absl::StatusOr<std::vector<float>> Logits(const PackedBatch& batch) override {
    return std::vector<float>(batch.input_ids.size(), 0.0f);
  }

  absl::StatusOr<std::vector<int32_t>> GenerateGreedy(const std::vector<int32_t>& prompt,
                                                      int64_t max_new_tokens,
                                                      const std::vector<int32_t>&) override {
    return std::vector<int32_t>(static_cast<size_t>(max_new_tokens), prompt.front());
  }

 private:
  double Weight() const { return static_cast<double>(adapter_->parameters()[0]); }

  static double Noise(const DropoutKey& key) {
    return std::sin(static_cast<double>(key.seed * 31 + key.step * 7 + key.micro_batch));
  }

  static double Target(int32_t id) { return 0.01 * id; }

  double Slope(const PackedBatch& batch, double w) const {
    double slope = 0;
    for (const int32_t id : batch.targets) {
      if (id != kIgnoreIndex) slope += w - Target(id);
    }
    return slope;
  }

  LossSum Sum(const PackedBatch& batch, double w) const {
    LossSum loss;
    for (const int32_t id : batch.targets) {
      if (id == kIgnoreIndex) continue;
      loss.nll_sum += constant_gradient ? w : 0.5 * (w - Target(id)) * (w - Target(id));
      ++loss.targets;
    }
    return loss;
  }

  static std::vector<int32_t> FirstIds(const PackedBatch& batch) {
    std::vector<int32_t> ids;
    for (size_t row = 0; row + 1 < batch.row_offsets.size(); ++row) {
      ids.push_back(batch.input_ids[static_cast<size_t>(batch.row_offsets[row])]);
    }
    return ids;
  }

  Adapter* adapter_;
  ModelConfig config_;
};

}  // namespace traind
