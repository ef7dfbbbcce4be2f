#include "common/modelspec/gguf_config.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/modelspec/config_check.h"
#include "common/modelspec/model_error.h"
#include "common/status/errors.h"

namespace traind {
namespace {

const GgufTensor* FindTensor(const GgufHeader& gguf, absl::string_view name) {
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

absl::StatusOr<int64_t> IntOr(const GgufHeader& gguf, const std::string& key, int64_t fallback) {
  if (!gguf.Has(key)) return fallback;
  return gguf.GetInt(key);
}

absl::StatusOr<double> DoubleOr(const GgufHeader& gguf, const std::string& key, double fallback) {
  if (!gguf.Has(key)) return fallback;
  return gguf.GetDouble(key);
}

absl::Status ReadSizes(const GgufHeader& gguf, ModelConfig* config) {
  TRAIND_ASSIGN_OR_RETURN(config->hidden_size, gguf.GetInt("llama.embedding_length"));
  TRAIND_ASSIGN_OR_RETURN(config->intermediate_size, gguf.GetInt("llama.feed_forward_length"));
  TRAIND_ASSIGN_OR_RETURN(config->num_hidden_layers, gguf.GetInt("llama.block_count"));
  TRAIND_ASSIGN_OR_RETURN(config->num_attention_heads, gguf.GetInt("llama.attention.head_count"));
  TRAIND_ASSIGN_OR_RETURN(config->num_key_value_heads, IntOr(gguf, "llama.attention.head_count_kv",
                                                             config->num_attention_heads));
  TRAIND_ASSIGN_OR_RETURN(config->max_position_embeddings, gguf.GetInt("llama.context_length"));
  TRAIND_ASSIGN_OR_RETURN(config->rms_norm_eps,
                          gguf.GetDouble("llama.attention.layer_norm_rms_epsilon"));
  TRAIND_ASSIGN_OR_RETURN(config->rope_theta, DoubleOr(gguf, "llama.rope.freq_base", 10000));
  const int64_t heads = std::max<int64_t>(config->num_attention_heads, 1);
  TRAIND_ASSIGN_OR_RETURN(config->head_dim,
                          IntOr(gguf, "llama.attention.key_length", config->hidden_size / heads));
  return absl::OkStatus();
}

absl::StatusOr<int32_t> TokenId(const GgufHeader& gguf, const std::string& key,
                                int64_t vocab_size) {
  TRAIND_ASSIGN_OR_RETURN(const int64_t id, IntOr(gguf, key, -1));
  if (id < -1 || id >= vocab_size) {
    return ModelInvalid(gguf.path(),
                        absl::StrCat(key, " is ", id, ", not an id below ", vocab_size));
  }
  return static_cast<int32_t>(id);
}

absl::Status ReadTokenIds(const GgufHeader& gguf, ModelConfig* config) {
  const int64_t vocab = config->vocab_size;
  TRAIND_ASSIGN_OR_RETURN(config->bos_token_id,
                          TokenId(gguf, "tokenizer.ggml.bos_token_id", vocab));
  TRAIND_ASSIGN_OR_RETURN(config->pad_token_id,
                          TokenId(gguf, "tokenizer.ggml.padding_token_id", vocab));
  TRAIND_ASSIGN_OR_RETURN(const int32_t eos, TokenId(gguf, "tokenizer.ggml.eos_token_id", vocab));
  if (eos >= 0) config->eos_token_ids.push_back(eos);
  return absl::OkStatus();
}

// What llama.cpp would compute differently from us.
absl::StatusOr<std::vector<std::string>> FindUnsupported(const GgufHeader& gguf,
                                                         const ModelConfig& config) {
  std::vector<std::string> problems;
  TRAIND_ASSIGN_OR_RETURN(const int64_t rotary,
                          IntOr(gguf, "llama.rope.dimension_count", config.head_dim));
  if (rotary != config.head_dim) {
    problems.push_back(absl::StrCat("llama.rope.dimension_count ", rotary, " for heads of ",
                                    config.head_dim, " is not supported"));
  }
  if (gguf.Has("llama.rope.scaling.type")) {
    TRAIND_ASSIGN_OR_RETURN(const std::string type, gguf.GetString("llama.rope.scaling.type"));
    if (type != "none") {
      problems.push_back(absl::StrCat("llama.rope.scaling.type \"", type,
                                      "\" is not supported; supported is \"none\""));
    }
  }
  TRAIND_ASSIGN_OR_RETURN(const double linear, DoubleOr(gguf, "llama.rope.scale_linear", 1));
  if (linear != 1) {
    problems.push_back(absl::StrCat("llama.rope.scale_linear ", linear, " is not supported"));
  }
  if (FindTensor(gguf, "rope_freqs.weight") != nullptr) {
    problems.push_back("rope_freqs.weight (RoPE of type \"llama3\") is not supported");
  }
  TRAIND_ASSIGN_OR_RETURN(const int64_t experts, IntOr(gguf, "llama.expert_count", 0));
  if (experts > 0) problems.push_back("llama.expert_count: experts are not supported");
  TRAIND_ASSIGN_OR_RETURN(const int64_t window, IntOr(gguf, "llama.attention.sliding_window",
                                                      config.max_position_embeddings));
  if (window < config.max_position_embeddings) {
    problems.push_back(absl::StrCat("llama.attention.sliding_window ", window, " below ",
                                    "llama.context_length is not supported"));
  }
  TRAIND_ASSIGN_OR_RETURN(const int64_t value_length,
                          IntOr(gguf, "llama.attention.value_length", config.head_dim));
  if (value_length != config.head_dim) {
    problems.push_back("llama.attention.value_length other than key_length is not supported");
  }
  return problems;
}

}  // namespace

absl::StatusOr<ModelConfig> ParseGgufConfig(const GgufHeader& gguf) {
  TRAIND_ASSIGN_OR_RETURN(const std::string architecture, gguf.GetString("general.architecture"));
  if (architecture != "llama") {
    return ModelInvalid(gguf.path(), absl::StrCat("architecture \"", architecture,
                                                  "\" is not supported; supported is \"llama\""));
  }
  const GgufTensor* embedding = FindTensor(gguf, "token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    return ModelInvalid(gguf.path(), "tensor token_embd.weight is missing or not a matrix");
  }
  ModelConfig config;
  config.model_type = "llama";
  config.vocab_size = embedding->shape[0];
  config.tie_word_embeddings = FindTensor(gguf, "output.weight") == nullptr;
  TRAIND_RETURN_IF_ERROR(ReadSizes(gguf, &config));
  TRAIND_RETURN_IF_ERROR(ReadTokenIds(gguf, &config));
  TRAIND_ASSIGN_OR_RETURN(std::vector<std::string> problems, FindUnsupported(gguf, config));
  for (std::string& problem : CheckModelConfig(config)) problems.push_back(std::move(problem));
  if (problems.empty()) return config;
  return ModelInvalid(gguf.path(), absl::StrJoin(problems, "; "));
}

}  // namespace traind
