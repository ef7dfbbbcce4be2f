#include "tests/unit/worker/model/autograd_llama.h"

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/device/cpu/dropout.h"

namespace traind {
namespace {

at::Tensor FromFloats(const float* data, at::IntArrayRef shape) {
  return at::from_blob(const_cast<float*>(data), shape, at::kFloat).to(at::kDouble).clone();
}

// One pass of the oracle.
class AutogradLlama {
 public:
  AutogradLlama(const FakeWeightSource& weights, const Adapter& adapter, const PackedBatch& batch,
                const DropoutKey& dropout)
      : config_(weights.config()), weights_(weights), adapter_(adapter), batch_(batch) {
    key_ = cpu::DeriveKey(cpu::DeriveKey(dropout.seed, dropout.step), dropout.micro_batch);
    for (const LoraModule& module : adapter.layout().modules) {
      const int64_t r = adapter.layout().options.r;
      const float* parameters = adapter.parameters().data();
      a_.push_back(FromFloats(parameters + module.a_offset, {r, module.in_features}));
      b_.push_back(FromFloats(parameters + module.b_offset, {module.out_features, r}));
      a_.back().set_requires_grad(true);
      b_.back().set_requires_grad(true);
    }
  }

  // Sum of the negative log-likelihoods.
  at::Tensor Loss() {
    at::Tensor x = Weight("model.embed_tokens.weight", {config_.vocab_size, config_.hidden_size})
                       .index_select(0, Int64(batch_.input_ids));
    for (int64_t i = 0; i < config_.num_hidden_layers; ++i) x = Layer(x, i);
    x = Norm(x, "model.norm.weight");
    const std::string head =
        config_.tie_word_embeddings ? "model.embed_tokens.weight" : "lm_head.weight";
    const at::Tensor logits = x.matmul(Weight(head, {config_.vocab_size, config_.hidden_size}).t());
    return at::cross_entropy_loss(logits, Int64(batch_.targets), {}, at::Reduction::Sum,
                                  kIgnoreIndex);
  }

  std::vector<double> Gradients() const {
    std::vector<double> gradients(static_cast<size_t>(adapter_.layout().size));
    const std::vector<LoraModule>& modules = adapter_.layout().modules;
    for (size_t i = 0; i < modules.size(); ++i) {
      Store(a_[i], modules[i].a_offset, gradients);
      Store(b_[i], modules[i].b_offset, gradients);
    }
    return gradients;
  }

 private:
  static at::Tensor Int64(const std::vector<int32_t>& values) {
    return at::tensor(at::ArrayRef<int32_t>(values)).to(at::kLong);
  }

  static void Store(const at::Tensor& parameter, int64_t offset, std::vector<double>& gradients) {
    if (!parameter.grad().defined()) return;
    const at::Tensor flat = parameter.grad().contiguous().view({-1});
    for (int64_t i = 0; i < flat.numel(); ++i) {
      gradients[static_cast<size_t>(offset + i)] = flat.data_ptr<double>()[i];
    }
  }

  at::Tensor Weight(const std::string& name, at::IntArrayRef shape) const {
    return FromFloats(weights_.tensor(name).data(), shape);
  }

  at::Tensor Norm(const at::Tensor& x, const std::string& name) const {
    const at::Tensor mean = x.pow(2).mean(-1, true);
    return Weight(name, {config_.hidden_size}) * x * (mean + config_.rms_norm_eps).rsqrt();
  }

  // dropout(x) with the engine's mask of one module.
  at::Tensor Dropout(const at::Tensor& x, size_t module) const {
    const double probability = adapter_.layout().options.lora_dropout;
    if (probability == 0) return x;
    const cpu::DropoutMask mask{cpu::DeriveKey(key_, module), probability};
    at::Tensor factors = at::zeros_like(x);
    for (int64_t row = 0; row < x.size(0); ++row) {
      for (int64_t col = 0; col < x.size(1); ++col) {
        if (cpu::Keeps(mask, row, col)) factors[row][col] = 1 / (1 - probability);
      }
    }
    return x * factors.detach();
  }

  at::Tensor Linear(const at::Tensor& x, const std::string& name, int64_t out, int64_t in) const {
    at::Tensor y = x.matmul(Weight(name + ".weight", {out, in}).t());
    const std::vector<LoraModule>& modules = adapter_.layout().modules;
    for (size_t i = 0; i < modules.size(); ++i) {
      if (modules[i].name != name) continue;
      y = y +
          Dropout(x, i).matmul(a_[i].t()).matmul(b_[i].t()) * adapter_.layout().options.scaling();
    }
    return y;
  }

  // x [tokens, heads * head_dim] -> [heads, tokens, head_dim], turned by its positions.
  at::Tensor Heads(const at::Tensor& x, int64_t heads, bool rotate) const {
    const int64_t half = config_.head_dim / 2;
    at::Tensor y = x.view({x.size(0), heads, config_.head_dim}).transpose(0, 1);
    if (!rotate) return y;
    const at::Tensor exponents =
        at::arange(half, at::kDouble) * (2.0 / static_cast<double>(config_.head_dim));
    const at::Tensor frequencies = at::pow(at::Scalar(config_.rope_theta), exponents).reciprocal();
    const at::Tensor angles = Int64(batch_.position_ids).to(at::kDouble).unsqueeze(1) * frequencies;
    const at::Tensor first = y.narrow(-1, 0, half);
    const at::Tensor second = y.narrow(-1, half, half);
    return at::cat({first * angles.cos() - second * angles.sin(),
                    second * angles.cos() + first * angles.sin()},
                   -1);
  }

  // 0 where a token may look, minus infinity elsewhere.
  at::Tensor Mask() const {
    const int64_t tokens = batch_.tokens();
    at::Tensor mask = at::full({tokens, tokens}, -INFINITY, at::kDouble);
    for (size_t row = 0; row + 1 < batch_.row_offsets.size(); ++row) {
      for (int64_t i = batch_.row_offsets[row]; i < batch_.row_offsets[row + 1]; ++i) {
        for (int64_t j = batch_.row_offsets[row]; j <= i; ++j) mask[i][j] = 0.0;
      }
    }
    return mask;
  }

  at::Tensor Attention(const at::Tensor& x, const std::string& prefix) const {
    const int64_t group = config_.num_attention_heads / config_.num_key_value_heads;
    const auto project = [&](const char* name, int64_t size) {
      return Linear(x, absl::StrCat(prefix, name), size, config_.hidden_size);
    };
    const at::Tensor q =
        Heads(project("q_proj", config_.query_size()), config_.num_attention_heads, true);
    const at::Tensor k =
        Heads(project("k_proj", config_.key_value_size()), config_.num_key_value_heads, true)
            .repeat_interleave(group, 0);
    const at::Tensor v =
        Heads(project("v_proj", config_.key_value_size()), config_.num_key_value_heads, false)
            .repeat_interleave(group, 0);
    const at::Tensor scores =
        q.matmul(k.transpose(1, 2)) / std::sqrt(static_cast<double>(config_.head_dim)) + Mask();
    const at::Tensor out =
        scores.softmax(-1).matmul(v).transpose(0, 1).reshape({x.size(0), config_.query_size()});
    return Linear(out, prefix + "o_proj", config_.hidden_size, config_.query_size());
  }

  at::Tensor Layer(const at::Tensor& input, int64_t index) const {
    const std::string prefix = absl::StrCat("model.layers.", index, ".");
    const int64_t hidden = config_.hidden_size;
    const int64_t inner = config_.intermediate_size;
    const at::Tensor x =
        input + Attention(Norm(input, prefix + "input_layernorm.weight"), prefix + "self_attn.");
    const at::Tensor normed = Norm(x, prefix + "post_attention_layernorm.weight");
    const at::Tensor gate = Linear(normed, prefix + "mlp.gate_proj", inner, hidden);
    const at::Tensor up = Linear(normed, prefix + "mlp.up_proj", inner, hidden);
    return x + Linear(at::silu(gate) * up, prefix + "mlp.down_proj", hidden, inner);
  }

  const ModelConfig& config_;
  const FakeWeightSource& weights_;
  const Adapter& adapter_;
  const PackedBatch& batch_;
  uint64_t key_;
  std::vector<at::Tensor> a_;
  std::vector<at::Tensor> b_;
};

}  // namespace

AutogradResult AutogradLoss(const FakeWeightSource& weights, const Adapter& adapter,
                            const PackedBatch& batch, double denominator,
                            const DropoutKey& dropout) {
  AutogradLlama model(weights, adapter, batch, dropout);
  const at::Tensor loss = model.Loss();
  (loss / denominator).backward();
  return {loss.item<double>(), model.Gradients()};
}

}  // namespace traind
