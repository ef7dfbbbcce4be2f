// Finds and reads checkpoints. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/checkpoint/checkpoint_files.h"

namespace traind {

struct FoundCheckpoint {
  std::string path;
  int64_t step = 0;
};

struct CheckpointSearch {
  std::optional<FoundCheckpoint> newest;
  std::vector<std::string> skipped;  // Newer ones that are not valid, newest first, and why.
};

// Looks for the newest checkpoint of the run `run_id` whose files all have the sizes and hashes of
// its manifest. Removes nothing; a folder that is missing holds none.
absl::StatusOr<CheckpointSearch> FindNewestValidCheckpoint(const std::string& directory,
                                                           const std::string& run_id);

// Fills the buffers and returns the run's state. Errors: CHECKPOINT_CORRUPT if a file does not fit
// the adapter, listing the tensors, or the adapter was made with another rank, alpha or rsLoRA.
absl::StatusOr<TrainingState> ReadCheckpoint(const std::string& path,
                                             const CheckpointBuffers& buffers);

}  // namespace traind
