// Which checkpoints are kept. No LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace traind {

// `checkpoint-<step>`.
std::string CheckpointFolderName(int64_t step);

// True for `checkpoint-<step>`, written as CheckpointFolderName does.
bool ParseCheckpointFolderName(absl::string_view name, int64_t* step);

// The steps to remove so that the newest `keep_last` of `complete` remain; never `just_saved`,
// which counts as one of them. 0 keeps all. Order is by step, whatever the clock said.
std::vector<int64_t> CheckpointsToRemove(std::vector<int64_t> complete, int64_t just_saved,
                                         int64_t keep_last);

// Removes old checkpoints of the run `run_id` from `directory` and returns their steps. Counts
// only folders whose manifest names the run and whose files are all there; touches nothing else.
absl::StatusOr<std::vector<int64_t>> RemoveOldCheckpoints(const std::string& directory,
                                                          const std::string& run_id,
                                                          int64_t just_saved, int64_t keep_last);

// Removes what saves that did not end have left.
absl::Status RemoveTemporaries(const std::string& directory);

}  // namespace traind
