#include "worker/model/weight_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/modelspec/model_error.h"
#include "common/modelspec/model_tensors.h"
#include "common/status/errors.h"

namespace traind {
namespace {

constexpr size_t kMostNames = 5;

// The first few of `names`, and how many more there are.
std::string Shorten(const std::vector<std::string>& names) {
  if (names.size() <= kMostNames) return absl::StrJoin(names, ", ");
  const auto end = names.begin() + kMostNames;
  return absl::StrCat(absl::StrJoin(names.begin(), end, ", "), " and ", names.size() - kMostNames,
                      " more");
}

// Tensors that some files carry although the architecture computes them.
bool IsRedundant(absl::string_view name, const ModelConfig& config) {
  if (absl::EndsWith(name, ".rotary_emb.inv_freq")) return true;
  return config.tie_word_embeddings && name == "lm_head.weight";
}

// What is wrong with `tensor` as the tensor `spec`; empty if nothing.
std::string Mismatch(const TensorSpec& spec, const StoredTensor& tensor) {
  if (tensor.shape != spec.shape) {
    return absl::StrCat("tensor \"", spec.name, "\" (", tensor.file, ") has shape ",
                        ShapeText(tensor.shape), ", but the config says ", ShapeText(spec.shape));
  }
  if (!tensor.format.has_value()) {
    return absl::StrCat("tensor \"", spec.name, "\" (", tensor.file, ") has type ",
                        tensor.type_name,
                        ", which is not supported; supported are F32, F16, BF16 "
                        "and, in GGUF, Q8_0, Q4_0 and Q4_1");
  }
  return "";
}

absl::Status CheckTensors(const std::string& path, const ModelConfig& config,
                          const std::map<std::string, StoredTensor>& tensors) {
  std::vector<std::string> missing;
  std::set<std::string> known;
  for (const TensorSpec& spec : ModelTensors(config)) {
    known.insert(spec.name);
    const auto found = tensors.find(spec.name);
    if (found == tensors.end()) {
      missing.push_back(spec.name);
      continue;
    }
    const std::string mismatch = Mismatch(spec, found->second);
    if (!mismatch.empty()) return ModelInvalid(path, mismatch);
  }
  if (!missing.empty()) {
    return ModelInvalid(path,
                        absl::StrCat(missing.size(), " tensors are missing: ", Shorten(missing)));
  }
  std::vector<std::string> unknown;
  for (const auto& [name, tensor] : tensors) {
    if (known.count(name) == 0 && !IsRedundant(name, config)) unknown.push_back(name);
  }
  if (unknown.empty()) return absl::OkStatus();
  return ModelInvalid(path, absl::StrCat(unknown.size(), " tensors have no place in a ",
                                         config.model_type, " model: ", Shorten(unknown)));
}

// Per head of n rows: stored row 2 i + j becomes row j n / 2 + i.
void ConvertInterleaved(const StoredTensor& tensor, absl::Span<float> out) {
  const int64_t rows = tensor.shape[0];
  const size_t columns = static_cast<size_t>(tensor.shape[1]);
  const int64_t head_rows = rows / tensor.interleaved_heads;
  const size_t row_bytes = tensor.data.size() / static_cast<size_t>(rows);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t head = row / head_rows;
    const int64_t in_head = row % head_rows;
    const int64_t half = in_head % 2 * (head_rows / 2);
    const size_t target = static_cast<size_t>(head * head_rows + half + in_head / 2);
    ConvertToFloat32(*tensor.format,
                     tensor.data.substr(static_cast<size_t>(row) * row_bytes, row_bytes),
                     out.subspan(target * columns, columns));
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightSource>> WeightTable::Create(
    const std::string& path, ModelConfig config, std::map<std::string, StoredTensor> tensors,
    std::shared_ptr<const void> owner) {
  TRAIND_RETURN_IF_ERROR(CheckTensors(path, config, tensors));
  return std::unique_ptr<WeightSource>(
      new WeightTable(path, std::move(config), std::move(tensors), std::move(owner)));
}

WeightTable::WeightTable(const std::string& path, ModelConfig config,
                         std::map<std::string, StoredTensor> tensors,
                         std::shared_ptr<const void> owner)
    : path_(path),
      config_(std::move(config)),
      tensors_(std::move(tensors)),
      owner_(std::move(owner)) {}

std::vector<std::string> WeightTable::names() const {
  std::vector<std::string> names;
  for (const TensorSpec& spec : ModelTensors(config_)) names.push_back(spec.name);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status WeightTable::ReadFloat32(absl::string_view name, absl::Span<const int64_t> shape,
                                      absl::Span<float> out) const {
  const auto found = tensors_.find(std::string(name));
  if (found == tensors_.end()) {
    return ModelInvalid(path_, absl::StrCat("there is no tensor \"", name, "\""));
  }
  const StoredTensor& tensor = found->second;
  const std::vector<int64_t> wanted(shape.begin(), shape.end());
  const std::string mismatch = Mismatch({std::string(name), wanted}, tensor);
  if (!mismatch.empty()) return ModelInvalid(path_, mismatch);
  if (out.size() != static_cast<size_t>(NumElements(wanted))) {
    return ModelInvalid(path_, absl::StrCat("tensor \"", name, "\" does not fit the buffer"));
  }
  if (tensor.interleaved_heads == 0) {
    ConvertToFloat32(*tensor.format, tensor.data, out);
  } else {
    ConvertInterleaved(tensor, out);
  }
  return absl::OkStatus();
}

}  // namespace traind
