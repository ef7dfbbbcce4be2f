#include "worker/checkpoint/checkpoint_writer.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/modelspec/safetensors_file.h"
#include "common/os/fault_point.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "worker/checkpoint/checkpoint_retention.h"
#include "worker/checkpoint/folder_manifest.h"
#include "worker/checkpoint/moment_names.h"
#include "worker/export/lora_tensors.h"

namespace traind {
namespace {

using nlohmann::json;

// The fields of Transformers' TrainerState, so that its tools can read the file.
std::string TrainerStateJson(const TrainingState& state) {
  const json object = {{"best_global_step", nullptr},      {"best_metric", nullptr},
                       {"best_model_checkpoint", nullptr}, {"epoch", state.epoch},
                       {"global_step", state.step},        {"is_hyper_param_search", false},
                       {"is_local_process_zero", true},    {"is_world_process_zero", true},
                       {"log_history", json::array()},     {"max_steps", state.max_steps}};
  return object.dump(2) + "\n";
}

// Moments lie under the names of their matrices, so that they survive a change of the layout.
absl::Status WriteOptimizer(const std::string& folder, const CheckpointContents& contents) {
  std::vector<SafetensorsEntry> entries =
      LoraEntries(contents.layout, kExpAvgPrefix, contents.exp_avg);
  for (SafetensorsEntry& entry :
       LoraEntries(contents.layout, kExpAvgSqPrefix, contents.exp_avg_sq)) {
    entries.push_back(std::move(entry));
  }
  return WriteSafetensors(absl::StrCat(folder, "/", kOptimizerFile), std::move(entries));
}

}  // namespace

absl::StatusOr<FolderManifest> CheckpointWriter::WriteFolder(const std::string& folder,
                                                             const CheckpointContents& contents,
                                                             absl::Time create_time) const {
  TRAIND_RETURN_IF_ERROR(CreateDirectories(folder));
  TRAIND_RETURN_IF_ERROR(
      WritePeftFiles(folder, contents.layout, contents.parameters, options_.base));
  TRAIND_RETURN_IF_ERROR(FaultPoint("checkpoint.after_weights"));
  TRAIND_RETURN_IF_ERROR(WriteOptimizer(folder, contents));
  TRAIND_RETURN_IF_ERROR(FaultPoint("checkpoint.after_optimizer"));
  TRAIND_RETURN_IF_ERROR(WriteFileAtomically(absl::StrCat(folder, "/", kTrainerStateFile),
                                             TrainerStateJson(contents.state)));
  TRAIND_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(folder, "/", kRunStateFile), contents.state.run_state));
  TRAIND_RETURN_IF_ERROR(FaultPoint("checkpoint.before_manifest"));
  FolderManifest manifest{contents.state.step, options_.run_id, create_time, {}};
  TRAIND_RETURN_IF_ERROR(WriteManifest(folder, manifest));
  TRAIND_RETURN_IF_ERROR(FaultPoint("checkpoint.before_rename"));
  return manifest;
}

absl::StatusOr<SavedCheckpoint> CheckpointWriter::Write(const CheckpointContents& contents,
                                                        absl::Time create_time) const {
  const std::string name = CheckpointFolderName(contents.state.step);
  const std::string path = absl::StrCat(options_.directory, "/", name);
  const std::string temporary = absl::StrCat(options_.directory, "/.tmp-", name, "-", ::getpid());
  TRAIND_RETURN_IF_ERROR(RemoveAll(temporary));
  const absl::StatusOr<FolderManifest> manifest = WriteFolder(temporary, contents, create_time);
  absl::Status status = manifest.status();
  if (status.ok()) status = ReplaceDirectoryDurably(temporary, path);
  if (!status.ok()) {
    // Frees the space if the disk is full; a failure of it would only hide the first error.
    RemoveAll(temporary).IgnoreError();
    return status;
  }
  TRAIND_RETURN_IF_ERROR(FaultPoint("checkpoint.after_rename"));
  SavedCheckpoint saved{path, manifest->size_bytes(), {}};
  TRAIND_ASSIGN_OR_RETURN(saved.removed_steps,
                          RemoveOldCheckpoints(options_.directory, options_.run_id,
                                               contents.state.step, options_.keep_last));
  return saved;
}

}  // namespace traind
