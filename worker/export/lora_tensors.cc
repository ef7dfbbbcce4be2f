#include "worker/export/lora_tensors.h"

#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/modelspec/model_tensors.h"
#include "common/status/errors.h"

namespace traind {
namespace {

// Calls `add(name, shape, offset)` for both matrices of all modules.
template <typename Add>
void ForEachMatrix(const AdapterLayout& layout, const std::string& prefix, Add add) {
  const int64_t r = layout.options.r;
  for (const LoraModule& module : layout.modules) {
    const std::string name = absl::StrCat(prefix, module.name);
    add(absl::StrCat(name, ".lora_A.weight"), {r, module.in_features}, module.a_offset);
    add(absl::StrCat(name, ".lora_B.weight"), {module.out_features, r}, module.b_offset);
  }
}

template <typename Number>
absl::Span<Number> Part(absl::Span<Number> flat, int64_t offset,
                        const std::vector<int64_t>& shape) {
  return flat.subspan(static_cast<size_t>(offset), static_cast<size_t>(NumElements(shape)));
}

absl::Status Mismatch(const std::string& path, absl::string_view text) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", text));
}

absl::Status ReadTensor(const std::string& path, const SafetensorsTensor& tensor,
                        const TensorSlot& slot) {
  if (tensor.dtype != "F32" || tensor.shape != slot.shape) {
    return Mismatch(path,
                    absl::StrCat("tensor \"", slot.name, "\" is ", tensor.dtype, " ",
                                 ShapeText(tensor.shape), ", not F32 ", ShapeText(slot.shape)));
  }
  std::memcpy(slot.values.data(), tensor.data.data(), tensor.data.size());
  return absl::OkStatus();
}

}  // namespace

std::vector<SafetensorsEntry> LoraEntries(const AdapterLayout& layout, const std::string& prefix,
                                          absl::Span<const float> flat) {
  std::vector<SafetensorsEntry> entries;
  const auto add = [&](std::string name, std::vector<int64_t> shape, int64_t offset) {
    entries.push_back({std::move(name), shape, Part(flat, offset, shape)});
  };
  ForEachMatrix(layout, prefix, add);
  return entries;
}

std::vector<TensorSlot> LoraSlots(const AdapterLayout& layout, const std::string& prefix,
                                  absl::Span<float> flat) {
  std::vector<TensorSlot> slots;
  const auto add = [&](std::string name, std::vector<int64_t> shape, int64_t offset) {
    slots.push_back({std::move(name), shape, Part(flat, offset, shape)});
  };
  ForEachMatrix(layout, prefix, add);
  return slots;
}

absl::Status ReadTensors(const std::string& path, const std::vector<TensorSlot>& slots) {
  TRAIND_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  std::set<std::string> unmatched;
  for (const auto& [name, tensor] : file.header().tensors()) unmatched.insert(name);
  std::vector<std::string> missing;
  for (const TensorSlot& slot : slots) {
    const auto found = file.header().tensors().find(slot.name);
    if (found == file.header().tensors().end()) {
      missing.push_back(slot.name);
      continue;
    }
    unmatched.erase(slot.name);
    TRAIND_RETURN_IF_ERROR(ReadTensor(path, found->second, slot));
  }
  if (unmatched.empty() && missing.empty()) return absl::OkStatus();
  return Mismatch(
      path, absl::StrCat(unmatched.size(), " tensors belong to no module of the adapter (",
                         absl::StrJoin(unmatched, ", "), ") and ", missing.size(), " are missing (",
                         absl::StrJoin(missing, ", "), ")"));
}

}  // namespace traind
