// A base model in memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/lora/adapter_layout.h"
#include "worker/model/weight_source.h"

namespace traind {

// Seeded random weights of any shape: norms near 1, the rest normal with deviation `spread`.
class FakeWeightSource : public WeightSource {
 public:
  FakeWeightSource(ModelConfig config, uint32_t seed, float spread = 0.2f)
      : config_(std::move(config)), generator_(seed), spread_(spread) {
    const int64_t hidden = config_.hidden_size;
    Add("model.embed_tokens.weight", config_.vocab_size * hidden);
    for (const LinearShape& layer : LinearLayersOf(config_)) {
      Add(layer.name + ".weight", layer.in_features * layer.out_features);
    }
    for (int64_t i = 0; i < config_.num_hidden_layers; ++i) {
      Add(absl::StrCat("model.layers.", i, ".input_layernorm.weight"), hidden);
      Add(absl::StrCat("model.layers.", i, ".post_attention_layernorm.weight"), hidden);
    }
    Add("model.norm.weight", hidden);
    if (!config_.tie_word_embeddings) Add("lm_head.weight", config_.vocab_size * hidden);
  }

  const ModelConfig& config() const override { return config_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const auto& [name, values] : tensors_) names.push_back(name);
    return names;
  }

  absl::Status ReadFloat32(absl::string_view name, absl::Span<const int64_t> shape,
                           absl::Span<float> out) const override {
    const auto found = tensors_.find(std::string(name));
    const int64_t size =
        std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
    if (found == tensors_.end() || found->second.size() != out.size() ||
        size != static_cast<int64_t>(out.size())) {
      return absl::InternalError(absl::StrCat("no tensor ", name, " of that size"));
    }
    std::copy(found->second.begin(), found->second.end(), out.begin());
    return absl::OkStatus();
  }

  std::vector<float>& tensor(const std::string& name) { return tensors_.at(name); }
  const std::vector<float>& tensor(const std::string& name) const { return tensors_.at(name); }

 private:
  void Add(const std::string& name, int64_t size) {
    const bool norm = absl::StrContains(name, "norm");
    std::normal_distribution<float> normal(norm ? 1.0f : 0.0f, norm ? 0.1f : spread_);
    std::vector<float>& values = tensors_[name];
    for (int64_t i = 0; i < size; ++i) values.push_back(normal(generator_));
  }

  ModelConfig config_;
  std::mt19937 generator_;
  float spread_;
  std::map<std::string, std::vector<float>> tensors_;
};

// A decoder small enough for tests, with two query heads per key/value head and sizes that are no
// multiples of the kernels' tiles.
inline ModelConfig UnevenLlamaConfig() {
  ModelConfig config;
  config.model_type = "llama";
  config.vocab_size = 37;
  config.hidden_size = 20;
  config.intermediate_size = 27;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 6;
  config.max_position_embeddings = 256;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 10000;
  return config;
}

}  // namespace traind
