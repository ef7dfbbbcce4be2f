// The metadata of a GGUF file as a ModelConfig.
#pragma once

#include "absl/status/statusor.h"
#include "common/modelspec/gguf_file.h"
#include "common/modelspec/model_config.h"

namespace traind {

// Reads general.architecture `llama` (Llama, SmolLM, Mistral). The vocabulary's size is that of
// the embedding; embeddings are tied if there is no `output.weight`. Errors: MODEL_INVALID, as
// ParseHfConfig.
absl::StatusOr<ModelConfig> ParseGgufConfig(const GgufHeader& gguf);

}  // namespace traind
