#include "worker/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "worker/checkpoint/checkpoint_retention.h"
#include "worker/checkpoint/folder_manifest.h"
#include "worker/checkpoint/moment_names.h"
#include "worker/export/lora_tensors.h"
#include "worker/export/peft_adapter.h"

namespace traind {
namespace {

using nlohmann::json;

absl::Status CheckFolder(const std::string& folder, const std::string& run_id, int64_t step) {
  TRAIND_ASSIGN_OR_RETURN(const FolderManifest manifest, ReadManifest(folder));
  if (manifest.run_id != run_id) {
    return CheckpointCorrupt(folder, absl::StrCat("it belongs to the run ", manifest.run_id));
  }
  if (manifest.step != step) {
    return CheckpointCorrupt(folder, absl::StrCat("it holds step ", manifest.step));
  }
  return CheckFiles(folder, manifest, /*hashes=*/true);
}

absl::StatusOr<json> ReadJson(const std::string& folder, const char* name) {
  const std::string path = absl::StrCat(folder, "/", name);
  TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, Reason::kCheckpointCorrupt));
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return CheckpointCorrupt(path, "it is not a JSON object");
  return object;
}

// The settings that change what the stored numbers mean.
absl::Status CheckAdapterConfig(const std::string& folder, const LoraOptions& options) {
  TRAIND_ASSIGN_OR_RETURN(const json config, ReadJson(folder, kAdapterConfigFile));
  const json expected = {
      {"r", options.r}, {"lora_alpha", options.lora_alpha}, {"use_rslora", options.use_rslora}};
  for (const auto& [key, value] : expected.items()) {
    const auto found = config.find(key);
    if (found != config.end() && *found == value) continue;
    return CheckpointCorrupt(
        folder, absl::StrCat("it was trained with ", key, " ",
                             found == config.end() ? "missing" : found->dump(), ", this run has ",
                             value.dump(), "; resume with the same settings or start anew"));
  }
  return absl::OkStatus();
}

absl::Status ReadOptimizer(const std::string& folder, const CheckpointBuffers& buffers) {
  std::vector<TensorSlot> slots = LoraSlots(buffers.layout, kExpAvgPrefix, buffers.exp_avg);
  for (TensorSlot& slot : LoraSlots(buffers.layout, kExpAvgSqPrefix, buffers.exp_avg_sq)) {
    slots.push_back(std::move(slot));
  }
  return ReadTensors(absl::StrCat(folder, "/", kOptimizerFile), slots);
}

absl::StatusOr<TrainingState> ReadState(const std::string& folder) {
  TRAIND_ASSIGN_OR_RETURN(const json trainer, ReadJson(folder, kTrainerStateFile));
  TRAIND_ASSIGN_OR_RETURN(std::string run_state, ReadFile(absl::StrCat(folder, "/", kRunStateFile),
                                                          Reason::kCheckpointCorrupt));
  const auto step = trainer.find("global_step");
  const auto max_steps = trainer.find("max_steps");
  const auto epoch = trainer.find("epoch");
  if (step == trainer.end() || !step->is_number_integer() || max_steps == trainer.end() ||
      !max_steps->is_number_integer() || epoch == trainer.end() || !epoch->is_number()) {
    return CheckpointCorrupt(folder, "trainer_state.json has no global_step, max_steps or epoch");
  }
  return TrainingState{step->get<int64_t>(), epoch->get<double>(), max_steps->get<int64_t>(),
                       std::move(run_state)};
}

}  // namespace

absl::StatusOr<CheckpointSearch> FindNewestValidCheckpoint(const std::string& directory,
                                                           const std::string& run_id) {
  CheckpointSearch search;
  if (!FileExists(directory)) return search;
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    int64_t step = 0;
    if (ParseCheckpointFolderName(name, &step)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  for (const int64_t step : steps) {
    const std::string path = absl::StrCat(directory, "/", CheckpointFolderName(step));
    const absl::Status status = CheckFolder(path, run_id, step);
    if (status.ok()) {
      search.newest = FoundCheckpoint{path, step};
      break;
    }
    search.skipped.emplace_back(status.message());
  }
  return search;
}

absl::StatusOr<TrainingState> ReadCheckpoint(const std::string& path,
                                             const CheckpointBuffers& buffers) {
  TRAIND_RETURN_IF_ERROR(CheckAdapterConfig(path, buffers.layout.options));
  absl::Status status = ReadPeftAdapter(path, buffers.layout, buffers.parameters);
  if (status.ok()) status = ReadOptimizer(path, buffers);
  if (!status.ok()) return CheckpointCorrupt(path, status.message());
  return ReadState(path);
}

}  // namespace traind
