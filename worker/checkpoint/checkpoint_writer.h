// Durable checkpoints: `checkpoint-<step>/` in a folder of the job's. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/checkpoint/checkpoint_files.h"
#include "worker/export/peft_adapter.h"

namespace traind {

struct CheckpointOptions {
  std::string directory;  // Created if it is missing.
  std::string run_id;     // Checkpoints of other runs are neither resumed from nor removed.
  PeftBase base;
  int64_t keep_last = 0;  // save_total_limit; 0 keeps all.
};

struct SavedCheckpoint {
  std::string path;
  int64_t size_bytes = 0;
  std::vector<int64_t> removed_steps;  // Older checkpoints that gave way to it.
};

// Writes checkpoints. A checkpoint is written under a temporary name, every file fsynced, the
// manifest last, then renamed and the folder fsynced: after a crash at any moment a
// `checkpoint-<step>` that is there is complete. Lives on the trainer's thread.
//
// Fault points: checkpoint.after_weights, checkpoint.after_optimizer, checkpoint.before_manifest,
// checkpoint.before_rename, checkpoint.after_rename.
class CheckpointWriter {
 public:
  explicit CheckpointWriter(CheckpointOptions options) : options_(std::move(options)) {}

  // An older checkpoint of the same step is replaced. Those beyond keep_last are removed after the
  // new one is durable. Errors: DISK_FULL, OUTPUT_FAILED; what was there before stays valid.
  absl::StatusOr<SavedCheckpoint> Write(const CheckpointContents& contents,
                                        absl::Time create_time) const;

 private:
  absl::StatusOr<FolderManifest> WriteFolder(const std::string& folder,
                                             const CheckpointContents& contents,
                                             absl::Time create_time) const;

  const CheckpointOptions options_;
};

}  // namespace traind
