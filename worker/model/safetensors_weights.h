// Weights from a Hugging Face folder.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "worker/model/weight_source.h"

namespace traind {

// Opens config.json and model.safetensors, or the shards that model.safetensors.index.json names.
// Errors as OpenWeights.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenSafetensorsWeights(const std::string& folder);

}  // namespace traind
