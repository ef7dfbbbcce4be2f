// Which tensors a model consists of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/modelspec/model_config.h"

namespace traind {

struct TensorSpec {
  std::string name;  // Hugging Face's, such as `model.layers.0.self_attn.q_proj.weight`.
  std::vector<int64_t> shape;
};

// All tensors of the architecture, in the order of the forward pass. Tied embeddings: no
// `lm_head.weight`.
std::vector<TensorSpec> ModelTensors(const ModelConfig& config);

// Numbers in the tensor.
int64_t NumElements(const std::vector<int64_t>& shape);

// Parameters of the model; a tied embedding counts once.
int64_t CountParameters(const ModelConfig& config);

// A shape for messages, such as `[16, 32]`.
std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace traind
