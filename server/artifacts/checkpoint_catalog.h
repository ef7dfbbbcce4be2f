// The valid checkpoints of a job on disk, and its finished adapter.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "traind/v1/checkpoint.pb.h"
#include "traind/v1/job.pb.h"

namespace traind::artifacts {

// Looks at the disk at each call and keeps nothing. A checkpoint is a folder `checkpoint-<step>`
// whose manifest.json is whole and whose files are all there in the right size, and so is the
// adapter's folder; others do not exist for this class. The contents are compared with the manifest
// only when they are read. The manifest is listed as a file of its own, so that a downloaded
// checkpoint is valid too. Thread-safe.
class CheckpointCatalog {
 public:
  explicit CheckpointCatalog(std::string state_dir) : state_dir_(std::move(state_dir)) {}

  // Oldest first, then the adapter if there is one.
  absl::StatusOr<std::vector<v1::Checkpoint>> List(const v1::Job& job) const;

  // `id` is a step or `adapter`. Errors: NOT_FOUND (CHECKPOINT_NOT_FOUND), DATA_LOSS
  // (CHECKPOINT_CORRUPT) if the folder is there but not valid.
  absl::StatusOr<v1::Checkpoint> Get(const v1::Job& job, const std::string& id) const;

 private:
  std::string state_dir_;
};

}  // namespace traind::artifacts
