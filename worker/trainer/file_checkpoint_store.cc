#include "worker/trainer/file_checkpoint_store.h"

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "worker/checkpoint/checkpoint_reader.h"
#include "worker/checkpoint/checkpoint_retention.h"

namespace traind {

absl::StatusOr<int64_t> FileCheckpointStore::Save(Adapter& adapter, const RunState& state) {
  const CheckpointContents contents{
      adapter.layout(),
      adapter.parameters(),
      adapter.exp_avg(),
      adapter.exp_avg_sq(),
      {state.step, plan_.EpochAt(state.step), plan_.total_steps(), RunStateToJson(state)}};
  TRAIND_ASSIGN_OR_RETURN(const SavedCheckpoint saved,
                          CheckpointWriter(options_).Write(contents, clock_.Now()));
  return saved.size_bytes;
}

absl::StatusOr<std::optional<RestoredRun>> FileCheckpointStore::RestoreNewest(Adapter& adapter) {
  TRAIND_RETURN_IF_ERROR(RemoveTemporaries(options_.directory));
  TRAIND_ASSIGN_OR_RETURN(CheckpointSearch search,
                          FindNewestValidCheckpoint(options_.directory, options_.run_id));
  RestoredRun restored;
  restored.skipped = std::move(search.skipped);
  if (!search.newest.has_value()) return std::optional<RestoredRun>();
  const CheckpointBuffers buffers{adapter.layout(), adapter.parameters(), adapter.exp_avg(),
                                  adapter.exp_avg_sq()};
  TRAIND_ASSIGN_OR_RETURN(const TrainingState state, ReadCheckpoint(search.newest->path, buffers));
  auto run_state = RunStateFromJson(state.run_state);
  if (!run_state.ok()) return WithContext(run_state.status(), search.newest->path);
  if (run_state->step != state.step || state.step > plan_.total_steps()) {
    return Error(
        absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
        absl::StrCat(search.newest->path, ": step ", run_state->step,
                     " does not fit its manifest or a run of ", plan_.total_steps(), " steps"),
        {{"path", search.newest->path}});
  }
  restored.state = *run_state;
  return std::optional<RestoredRun>(std::move(restored));
}

}  // namespace traind
