// Where a run keeps its checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/lora/adapter.h"
#include "worker/trainer/run_state.h"

namespace traind {

// What a restart finds.
struct RestoredRun {
  RunState state;
  std::vector<std::string> skipped;  // Newer checkpoints that are not valid, and why.
};

// Saves and restores the adapter, its moments and the run's state. Lives on the trainer's thread.
class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  // Returns the checkpoint's size in bytes once it is durable; older checkpoints beyond the limit
  // are removed after that. Errors: DISK_FULL, OUTPUT_FAILED; older checkpoints stay valid.
  virtual absl::StatusOr<int64_t> Save(Adapter& adapter, const RunState& state) = 0;

  // Fills `adapter` from the newest valid checkpoint; nullopt if there is none. Errors:
  // CHECKPOINT_CORRUPT if checkpoints exist but belong to another adapter.
  virtual absl::StatusOr<std::optional<RestoredRun>> RestoreNewest(Adapter& adapter) = 0;
};

}  // namespace traind
