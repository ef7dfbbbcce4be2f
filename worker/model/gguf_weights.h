// Weights from a GGUF file.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/model/weight_source.h"

namespace traind {

// Opens a GGUF file of architecture `llama`. Errors as OpenWeights.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenGgufWeights(const std::string& path);

}  // namespace traind
