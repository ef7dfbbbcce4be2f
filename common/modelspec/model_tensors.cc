#include "common/modelspec/model_tensors.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace traind {
namespace {

void AddLayer(const ModelConfig& config, int64_t layer, std::vector<TensorSpec>* tensors) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const int64_t hidden = config.hidden_size;
  const auto add = [&](const char* name, std::vector<int64_t> shape) {
    tensors->push_back({absl::StrCat(prefix, name, ".weight"), std::move(shape)});
  };
  add("input_layernorm", {hidden});
  add("self_attn.q_proj", {config.query_size(), hidden});
  add("self_attn.k_proj", {config.key_value_size(), hidden});
  add("self_attn.v_proj", {config.key_value_size(), hidden});
  add("self_attn.o_proj", {hidden, config.query_size()});
  add("post_attention_layernorm", {hidden});
  add("mlp.gate_proj", {config.intermediate_size, hidden});
  add("mlp.up_proj", {config.intermediate_size, hidden});
  add("mlp.down_proj", {hidden, config.intermediate_size});
}

}  // namespace

std::vector<TensorSpec> ModelTensors(const ModelConfig& config) {
  std::vector<TensorSpec> tensors;
  tensors.push_back({"model.embed_tokens.weight", {config.vocab_size, config.hidden_size}});
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) AddLayer(config, i, &tensors);
  tensors.push_back({"model.norm.weight", {config.hidden_size}});
  if (!config.tie_word_embeddings) {
    tensors.push_back({"lm_head.weight", {config.vocab_size, config.hidden_size}});
  }
  return tensors;
}

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

int64_t CountParameters(const ModelConfig& config) {
  int64_t count = 0;
  for (const TensorSpec& tensor : ModelTensors(config)) count += NumElements(tensor.shape);
  return count;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace traind
