// What a base model is: its shape and the constants of its arithmetic, from a Hugging Face
// config.json or from GGUF metadata. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace traind {

// A decoder of the Llama family (Llama, SmolLM, Mistral without a window). Names as in
// Transformers' LlamaConfig.
struct ModelConfig {
  std::string model_type;  // `llama` or `mistral`.
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 0;
  double rope_theta = 0;
  bool tie_word_embeddings = false;
  std::string dtype;                   // As config.json says it, such as `bfloat16`; may be empty.
  int32_t bos_token_id = -1;           // -1: none.
  std::vector<int32_t> eos_token_ids;  // May be empty.
  int32_t pad_token_id = -1;           // -1: none.

  int64_t query_size() const { return num_attention_heads * head_dim; }
  int64_t key_value_size() const { return num_key_value_heads * head_dim; }
};

}  // namespace traind
