// A Hugging Face config.json as a ModelConfig.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/modelspec/model_config.h"

namespace traind {

// Reads what Transformers 4 and 5 write for `llama` and `mistral`, with the defaults of LlamaConfig
// and MistralConfig. Sizes have no default. `path` only names the file. Errors: MODEL_INVALID that
// names everything in the file that traind would otherwise compute wrongly: other architectures,
// scaled RoPE, sliding windows, biases, other activations, quantised weights, impossible sizes.
absl::StatusOr<ModelConfig> ParseHfConfig(absl::string_view json, const std::string& path);

}  // namespace traind
