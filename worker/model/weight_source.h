// The base model's weights by their Hugging Face names, whatever file they are in. No LibTorch.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/modelspec/model_config.h"

namespace traind {

// Weights of one model. Thread-safe: files are memory-mapped and converted on the fly.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  virtual const ModelConfig& config() const = 0;

  // Hugging Face names of all tensors, sorted, such as `model.layers.0.self_attn.q_proj.weight`.
  virtual std::vector<std::string> names() const = 0;

  // Converts one tensor to fp32, row-major, into `out`. Errors: MODEL_INVALID, naming tensor and
  // file, if it is missing, has another shape, or a type that cannot be read.
  virtual absl::Status ReadFloat32(absl::string_view name, absl::Span<const int64_t> shape,
                                   absl::Span<float> out) const = 0;
};

// Opens a Hugging Face folder (config.json, safetensors, sharded or not) or a GGUF file (F32 F16
// BF16 Q8_0 Q4_0 Q4_1; llama q/k rows are un-permuted). Checks that every tensor that the
// architecture needs is there with its shape. Errors: MODEL_NOT_FOUND, MODEL_INVALID.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenWeights(const std::string& path);

}  // namespace traind
