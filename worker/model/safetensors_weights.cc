#include "worker/model/safetensors_weights.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/modelspec/hf_config.h"
#include "common/modelspec/json_object.h"
#include "common/modelspec/model_error.h"
#include "common/modelspec/safetensors_file.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "worker/model/weight_table.h"

namespace traind {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";

using Shards = std::map<std::string, SafetensorsFile>;  // By file name.

std::optional<NumberFormat> FormatOf(absl::string_view dtype) {
  if (dtype == "F32") return NumberFormat::kFloat32;
  if (dtype == "F16") return NumberFormat::kFloat16;
  if (dtype == "BF16") return NumberFormat::kBfloat16;
  return std::nullopt;
}

StoredTensor Store(const SafetensorsTensor& tensor, const std::string& file) {
  return {tensor.shape, FormatOf(tensor.dtype), tensor.dtype, file, tensor.data, 0};
}

absl::StatusOr<ModelConfig> ReadConfig(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/config.json");
  if (FileExists(path)) {
    TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, Reason::kModelNotFound));
    return ParseHfConfig(text, path);
  }
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    if (name == "adapter_config.json") {
      return ModelInvalid(folder, "this is an adapter, not a base model (config.json is missing)");
    }
    if (absl::EndsWith(name, ".gguf")) {
      return ModelInvalid(folder, absl::StrCat("config.json is missing; to use a GGUF file, name ",
                                               "the file itself: ", folder, "/", name));
    }
  }
  return ModelInvalid(folder, "config.json is missing");
}

absl::Status NoWeights(const std::string& folder) {
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, "pytorch_model") && absl::StrContains(name, ".bin")) {
      return ModelInvalid(
          folder, absl::StrCat("the weights are in ", name,
                               ", a pickle, which can run any code "
                               "when it is read and is refused; convert it on a machine where you "
                               "trust it: AutoModelForCausalLM.from_pretrained(\"",
                               folder, "\").save_pretrained(\"NEW_FOLDER\")"));
    }
  }
  return ModelInvalid(folder, absl::StrCat("there is a config.json but no weights (", kSingleFile,
                                           " or ", kIndexFile, ")"));
}

// The file of each tensor, from the index.
absl::StatusOr<std::map<std::string, std::string>> ReadWeightMap(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kIndexFile);
  TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, Reason::kModelNotFound));
  TRAIND_ASSIGN_OR_RETURN(const nlohmann::json index, ParseJsonObject(text, path));
  const auto found = index.find("weight_map");
  if (found == index.end() || !found->is_object()) {
    return ModelInvalid(path, "weight_map is missing or not an object");
  }
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : found->items()) {
    // A path could lead out of the folder.
    if (!file.is_string() || absl::StrContains(file.get<std::string>(), '/')) {
      return ModelInvalid(path, absl::StrCat("weight_map names no file of the folder for \"", name,
                                             "\": ", JsonText(file)));
    }
    files[name] = file.get<std::string>();
  }
  return files;
}

absl::Status OpenShard(const std::string& folder, const std::string& file, Shards* shards) {
  if (shards->count(file) != 0) return absl::OkStatus();
  const std::string path = absl::StrCat(folder, "/", file);
  if (!FileExists(path)) {
    return ModelInvalid(folder, absl::StrCat(kIndexFile, " names ", file, ", which is missing"));
  }
  TRAIND_ASSIGN_OR_RETURN(SafetensorsFile shard, SafetensorsFile::Open(path));
  shards->emplace(file, std::move(shard));
  return absl::OkStatus();
}

absl::StatusOr<std::map<std::string, StoredTensor>> OpenShards(const std::string& folder,
                                                               Shards* shards) {
  TRAIND_ASSIGN_OR_RETURN(const auto weight_map, ReadWeightMap(folder));
  std::map<std::string, StoredTensor> tensors;
  for (const auto& [name, file] : weight_map) {
    TRAIND_RETURN_IF_ERROR(OpenShard(folder, file, shards));
    const auto& stored = shards->at(file).header().tensors();
    const auto found = stored.find(name);
    if (found == stored.end()) {
      return ModelInvalid(folder, absl::StrCat(kIndexFile, " places \"", name, "\" in ", file,
                                               ", which does not have it"));
    }
    tensors.emplace(name, Store(found->second, file));
  }
  return tensors;
}

absl::StatusOr<std::map<std::string, StoredTensor>> OpenFiles(const std::string& folder,
                                                              Shards* shards) {
  if (FileExists(absl::StrCat(folder, "/", kSingleFile))) {
    TRAIND_RETURN_IF_ERROR(OpenShard(folder, kSingleFile, shards));
    std::map<std::string, StoredTensor> tensors;
    for (const auto& [name, tensor] : shards->at(kSingleFile).header().tensors()) {
      tensors.emplace(name, Store(tensor, kSingleFile));
    }
    return tensors;
  }
  if (FileExists(absl::StrCat(folder, "/", kIndexFile))) return OpenShards(folder, shards);
  return NoWeights(folder);
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightSource>> OpenSafetensorsWeights(const std::string& folder) {
  TRAIND_ASSIGN_OR_RETURN(ModelConfig config, ReadConfig(folder));
  auto shards = std::make_shared<Shards>();
  TRAIND_ASSIGN_OR_RETURN(auto tensors, OpenFiles(folder, shards.get()));
  return WeightTable::Create(folder, std::move(config), std::move(tensors), std::move(shards));
}

}  // namespace traind
