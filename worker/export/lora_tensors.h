// The matrices of a flat adapter buffer as named tensors. No LibTorch.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/modelspec/safetensors_file.h"
#include "worker/lora/adapter.h"

namespace traind {

// Where a tensor belongs. `values` is borrowed.
struct TensorSlot {
  std::string name;
  std::vector<int64_t> shape;
  absl::Span<float> values;
};

// `<prefix><module>.lora_A.weight` [r, in] and `.lora_B.weight` [out, r] of all modules.
// REQUIRES: `flat` has layout.size numbers.
std::vector<SafetensorsEntry> LoraEntries(const AdapterLayout& layout, const std::string& prefix,
                                          absl::Span<const float> flat);
std::vector<TensorSlot> LoraSlots(const AdapterLayout& layout, const std::string& prefix,
                                  absl::Span<float> flat);

// Fills all slots from a safetensors file that has exactly these tensors, in float32. Errors, with
// a plain message that begins with the path: INVALID_ARGUMENT that lists names of the file that
// have no slot and slots that the file does not fill.
absl::Status ReadTensors(const std::string& path, const std::vector<TensorSlot>& slots);

}  // namespace traind
