// Checkpoints in a folder of the job's.
#pragma once

#include <utility>

#include "common/os/clock.h"
#include "worker/checkpoint/checkpoint_writer.h"
#include "worker/data/batch_plan.h"
#include "worker/trainer/checkpoint_store.h"

namespace traind {

// CheckpointStore over `checkpoint-<step>/` folders; see CheckpointWriter for what survives a
// crash. Lives on the trainer's thread.
class FileCheckpointStore : public CheckpointStore {
 public:
  // `plan` and `clock` are borrowed and outlive the store.
  FileCheckpointStore(CheckpointOptions options, const BatchPlan& plan, const Clock& clock)
      : options_(std::move(options)), plan_(plan), clock_(clock) {}

  absl::StatusOr<int64_t> Save(Adapter& adapter, const RunState& state) override;
  absl::StatusOr<std::optional<RestoredRun>> RestoreNewest(Adapter& adapter) override;

 private:
  const CheckpointOptions options_;
  const BatchPlan& plan_;
  const Clock& clock_;
};

}  // namespace traind
