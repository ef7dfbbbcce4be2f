// An adapter over the tiny Llama of tests/golden/weights, with numbers in it.
#pragma once

#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/strip.h"
#include "common/modelspec/model_config.h"
#include "common/modelspec/model_tensors.h"
#include "worker/lora/adapter.h"

namespace traind {

inline ModelConfig TinyLlamaConfig() {
  ModelConfig config;
  config.model_type = "llama";
  config.vocab_size = 266;
  config.hidden_size = 16;
  config.intermediate_size = 32;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 4;
  config.max_position_embeddings = 4096;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 10000;
  return config;
}

// A layout over the modules whose last name is in `suffixes`.
inline AdapterLayout TinyAdapterLayout(const std::set<std::string>& suffixes = {"q_proj",
                                                                                "v_proj"}) {
  AdapterLayout layout;
  layout.options.r = 2;
  layout.options.lora_alpha = 4;
  for (const TensorSpec& tensor : ModelTensors(TinyLlamaConfig())) {
    const std::string name(absl::StripSuffix(tensor.name, ".weight"));
    if (suffixes.count(name.substr(name.rfind('.') + 1)) == 0) continue;
    LoraModule module{name, tensor.shape[1], tensor.shape[0], layout.size, 0};
    module.b_offset = module.a_offset + layout.options.r * module.in_features;
    layout.size = module.b_offset + layout.options.r * module.out_features;
    layout.modules.push_back(module);
  }
  return layout;
}

// Numbers that differ from each other and between seeds.
inline std::vector<float> Waves(int64_t count, double seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i) + seed));
  }
  return values;
}

}  // namespace traind
