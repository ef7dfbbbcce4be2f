#include "worker/export/peft_adapter.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/modelspec/model_tensors.h"
#include "common/modelspec/safetensors_file.h"
#include "common/os/fault_point.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "worker/export/lora_tensors.h"

namespace traind {
namespace {

using nlohmann::json;

constexpr char kPeftPrefix[] = "base_model.model.";
constexpr char kWeight[] = ".weight";

absl::Status AdapterInvalid(absl::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kAdapterInvalid, message,
               {{"problem", message}});
}

// Shapes [out, in] of the linear layers that a decoder's layers consist of, by module name.
std::map<std::string, std::vector<int64_t>> LinearShapes(const ModelConfig& config) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const TensorSpec& tensor : ModelTensors(config)) {
    const bool in_layer = absl::StartsWith(tensor.name, "model.layers.");
    if (!in_layer || tensor.shape.size() != 2) continue;
    shapes[std::string(absl::StripSuffix(tensor.name, kWeight))] = tensor.shape;
  }
  return shapes;
}

std::string Suffix(const std::string& module) { return module.substr(module.rfind('.') + 1); }

std::vector<std::string> TargetModules(const AdapterLayout& layout, const ModelConfig& config) {
  std::set<std::string> adapted;
  std::set<std::string> suffixes;
  for (const LoraModule& module : layout.modules) {
    adapted.insert(module.name);
    suffixes.insert(Suffix(module.name));
  }
  for (const auto& [name, shape] : LinearShapes(config)) {
    const bool hit = suffixes.count(Suffix(name)) != 0;
    if (hit && adapted.count(name) == 0) return {adapted.begin(), adapted.end()};
  }
  return {suffixes.begin(), suffixes.end()};
}

// An integer where there is one, as PEFT's lora_alpha is.
json Number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<int64_t>(value);
  return value;
}

bool IsFinite(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

bool IsZero(absl::Span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return x == 0; });
}

// Checks the tensors of one file against its base and gathers what is wrong.
class AdapterChecker {
 public:
  explicit AdapterChecker(const ModelConfig& base) : shapes_(LinearShapes(base)) {}

  void Add(const std::string& name, const SafetensorsTensor& tensor) {
    absl::string_view module = name;
    const bool peft_name = absl::ConsumePrefix(&module, kPeftPrefix);
    const bool is_a = absl::ConsumeSuffix(&module, ".lora_A.weight");
    const bool is_b = !is_a && absl::ConsumeSuffix(&module, ".lora_B.weight");
    const auto found = shapes_.find(std::string(module));
    if (!peft_name || (!is_a && !is_b) || found == shapes_.end()) {
      problems_.push_back(absl::StrCat(name, " belongs to no module of the base model"));
      return;
    }
    const std::vector<int64_t>& base_shape = found->second;
    const size_t free_axis = is_a ? 0 : 1;  // The axis of length r.
    if (tensor.dtype != "F32" || tensor.shape.size() != 2 ||
        tensor.shape[1 - free_axis] != base_shape[1 - free_axis] || tensor.shape[free_axis] < 1) {
      problems_.push_back(absl::StrCat(name, " is ", tensor.dtype, " ", ShapeText(tensor.shape),
                                       ", which does not fit the base's ", ShapeText(base_shape)));
      return;
    }
    ranks_[std::string(module)][is_a ? 0 : 1] = tensor.shape[free_axis];
    CheckValues(name, tensor, is_b);
  }

  std::vector<std::string> Problems() {
    if (ranks_.empty() && problems_.empty()) problems_.push_back("it has no tensors");
    for (const auto& [module, ranks] : ranks_) {
      if (ranks[0] == ranks[1]) continue;
      problems_.push_back(
          absl::StrCat(module, " has A of rank ", ranks[0], " and B of rank ", ranks[1]));
    }
    return problems_;
  }

 private:
  void CheckValues(const std::string& name, const SafetensorsTensor& tensor, bool is_b) {
    // safetensors aligns nothing but the header, so the numbers are copied.
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::copy_n(tensor.data.data(), tensor.data.size(), reinterpret_cast<char*>(values.data()));
    if (!IsFinite(values)) problems_.push_back(absl::StrCat(name, " has NaN or infinity"));
    if (is_b && IsZero(values)) {
      problems_.push_back(absl::StrCat(name, " is all zero: the module was never trained"));
    }
  }

  std::map<std::string, std::vector<int64_t>> shapes_;
  std::map<std::string, std::array<int64_t, 2>> ranks_;  // Of A and B; 0: not seen.
  std::vector<std::string> problems_;
};

absl::Status CheckSize(const AdapterLayout& layout, size_t size) {
  if (static_cast<size_t>(layout.size) == size) return absl::OkStatus();
  return Error(absl::StatusCode::kInternal, Reason::kBug,
               absl::StrCat("an adapter of ", layout.size, " numbers got a buffer of ", size));
}

absl::StatusOr<FolderManifest> WriteChecked(const std::string& folder, const AdapterLayout& layout,
                                            absl::Span<const float> parameters,
                                            const PeftBase& base,
                                            const AdapterPublication& publication) {
  TRAIND_RETURN_IF_ERROR(CreateDirectories(folder));
  TRAIND_RETURN_IF_ERROR(WritePeftFiles(folder, layout, parameters, base));
  TRAIND_RETURN_IF_ERROR(FaultPoint("export.after_weights"));
  TRAIND_RETURN_IF_ERROR(CheckPeftAdapter(folder, base.config));
  for (const auto& [name, contents] : publication.extra_files) {
    TRAIND_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", name), contents));
  }
  FolderManifest manifest{publication.step, publication.run_id, publication.create_time, {}};
  TRAIND_RETURN_IF_ERROR(WriteManifest(folder, manifest));
  TRAIND_RETURN_IF_ERROR(FaultPoint("export.before_rename"));
  return manifest;
}

}  // namespace

std::string PeftConfigJson(const AdapterLayout& layout, const PeftBase& base) {
  const LoraOptions& options = layout.options;
  const json config = {{"alpha_pattern", json::object()},
                       {"auto_mapping", nullptr},
                       {"base_model_name_or_path", base.name_or_path},
                       {"bias", "none"},
                       {"fan_in_fan_out", false},
                       {"inference_mode", true},
                       {"init_lora_weights", options.init_lora_weights},
                       {"layers_pattern", nullptr},
                       {"layers_to_transform", nullptr},
                       {"lora_alpha", Number(options.lora_alpha)},
                       {"lora_dropout", options.lora_dropout},
                       {"modules_to_save", nullptr},
                       {"peft_type", "LORA"},
                       {"r", options.r},
                       {"rank_pattern", json::object()},
                       {"revision", nullptr},
                       {"target_modules", TargetModules(layout, base.config)},
                       {"task_type", "CAUSAL_LM"},
                       {"use_dora", false},
                       {"use_rslora", options.use_rslora}};
  // A path need not be UTF-8, JSON must be.
  return config.dump(2, ' ', false, json::error_handler_t::replace);
}

absl::Status WritePeftFiles(const std::string& folder, const AdapterLayout& layout,
                            absl::Span<const float> parameters, const PeftBase& base) {
  TRAIND_RETURN_IF_ERROR(CheckSize(layout, parameters.size()));
  TRAIND_RETURN_IF_ERROR(WriteSafetensors(absl::StrCat(folder, "/", kAdapterModelFile),
                                          LoraEntries(layout, kPeftPrefix, parameters)));
  return WriteFileAtomically(absl::StrCat(folder, "/", kAdapterConfigFile),
                             PeftConfigJson(layout, base));
}

absl::Status ReadPeftAdapter(const std::string& folder, const AdapterLayout& layout,
                             absl::Span<float> parameters) {
  TRAIND_RETURN_IF_ERROR(CheckSize(layout, parameters.size()));
  const absl::Status status = ReadTensors(absl::StrCat(folder, "/", kAdapterModelFile),
                                          LoraSlots(layout, kPeftPrefix, parameters));
  return status.ok() ? status : AdapterInvalid(status.message());
}

absl::Status CheckPeftAdapter(const std::string& folder, const ModelConfig& base) {
  const std::string path = absl::StrCat(folder, "/", kAdapterModelFile);
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(path);
  if (!file.ok()) return AdapterInvalid(file.status().message());
  AdapterChecker checker(base);
  for (const auto& [name, tensor] : file->header().tensors()) checker.Add(name, tensor);
  const std::vector<std::string> problems = checker.Problems();
  if (problems.empty()) return absl::OkStatus();
  return AdapterInvalid(absl::StrCat(path, ": ", absl::StrJoin(problems, "; ")));
}

absl::StatusOr<FolderManifest> PublishPeftAdapter(const std::string& folder,
                                                  const AdapterLayout& layout,
                                                  absl::Span<const float> parameters,
                                                  const PeftBase& base,
                                                  const AdapterPublication& publication) {
  const std::filesystem::path target(folder);
  const std::string temporary =
      (target.parent_path() / absl::StrCat(".tmp-", target.filename().string(), "-", ::getpid()))
          .string();
  TRAIND_RETURN_IF_ERROR(RemoveAll(temporary));
  absl::StatusOr<FolderManifest> manifest =
      WriteChecked(temporary, layout, parameters, base, publication);
  absl::Status status = manifest.status();
  if (status.ok()) status = ReplaceDirectoryDurably(temporary, folder);
  if (status.ok()) return manifest;
  // Frees the space if the disk is full; a failure of it would only hide the first error.
  RemoveAll(temporary).IgnoreError();
  return status;
}

}  // namespace traind
