// An adapter as Hugging Face PEFT reads and writes it: adapter_model.safetensors and
// adapter_config.json. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/modelspec/model_config.h"
#include "worker/checkpoint/folder_manifest.h"
#include "worker/lora/adapter.h"

namespace traind {

inline constexpr char kAdapterModelFile[] = "adapter_model.safetensors";
inline constexpr char kAdapterConfigFile[] = "adapter_config.json";

// What an adapter says about its base.
struct PeftBase {
  std::string name_or_path;  // base_model_name_or_path.
  ModelConfig config;
};

// adapter_config.json with the keys that PEFT has had since 0.10. target_modules are the suffixes
// of the adapted modules, or, where a suffix would also hit a module that is not adapted, full
// names.
std::string PeftConfigJson(const AdapterLayout& layout, const PeftBase& base);

// Writes the two files into `folder`, fsynced. Tensors are float32, named
// `base_model.model.<module>.lora_A.weight` [r, in] and `.lora_B.weight` [out, r].
// Errors: DISK_FULL, OUTPUT_FAILED.
absl::Status WritePeftFiles(const std::string& folder, const AdapterLayout& layout,
                            absl::Span<const float> parameters, const PeftBase& base);

// Fills `parameters` from `folder`, bit for bit. Errors: ADAPTER_INVALID that lists all names that
// do not match.
absl::Status ReadPeftAdapter(const std::string& folder, const AdapterLayout& layout,
                             absl::Span<float> parameters);

// Reads an adapter back and checks that it would change `base`: every tensor belongs to a module of
// it and fits it, no A without B, no NaN or infinity, no B that is all zero. Errors:
// ADAPTER_INVALID, naming the tensors.
absl::Status CheckPeftAdapter(const std::string& folder, const ModelConfig& base);

// What else belongs to a published adapter.
struct AdapterPublication {
  int64_t step = 0;
  std::string run_id;
  absl::Time create_time;
  std::vector<std::pair<std::string, std::string>> extra_files;  // Name and contents.
};

// Writes the finished adapter to a temporary folder beside `folder`, checks it, gives it a manifest
// and renames it into place, where it replaces an older one. Errors: as above; nothing appears at
// `folder` then.
absl::StatusOr<FolderManifest> PublishPeftAdapter(const std::string& folder,
                                                  const AdapterLayout& layout,
                                                  absl::Span<const float> parameters,
                                                  const PeftBase& base,
                                                  const AdapterPublication& publication);

}  // namespace traind
