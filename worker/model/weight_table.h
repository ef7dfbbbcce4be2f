// Weights as a table of stored tensors: what all weight files have in common.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/model/dequantize.h"
#include "worker/model/weight_source.h"

namespace traind {

// A tensor in a weight file. `data` is borrowed from the mapped file.
struct StoredTensor {
  std::vector<int64_t> shape;
  std::optional<NumberFormat> format;  // None: a type that cannot be read.
  std::string type_name;               // The file's word for its type.
  std::string file;                    // Where it is, for messages.
  absl::string_view data;
  // Not 0: the rows of each of so many heads are stored in pairs for interleaved RoPE, as GGUF
  // does for Llama's q and k, and are put back into halves when read.
  int64_t interleaved_heads = 0;
};

// A WeightSource over stored tensors. `owner` keeps the mapped files alive. Thread-safe.
class WeightTable : public WeightSource {
 public:
  // Checks that the tensors are exactly those of the architecture. `path` names the model in
  // messages. Errors: MODEL_INVALID that lists missing, misshapen, unreadable and unknown tensors.
  static absl::StatusOr<std::unique_ptr<WeightSource>> Create(
      const std::string& path, ModelConfig config, std::map<std::string, StoredTensor> tensors,
      std::shared_ptr<const void> owner);

  const ModelConfig& config() const override { return config_; }
  std::vector<std::string> names() const override;
  absl::Status ReadFloat32(absl::string_view name, absl::Span<const int64_t> shape,
                           absl::Span<float> out) const override;

 private:
  WeightTable(const std::string& path, ModelConfig config,
              std::map<std::string, StoredTensor> tensors, std::shared_ptr<const void> owner);

  std::string path_;
  ModelConfig config_;
  std::map<std::string, StoredTensor> tensors_;
  std::shared_ptr<const void> owner_;  // Of a type that depends on the file's kind.
};

}  // namespace traind
