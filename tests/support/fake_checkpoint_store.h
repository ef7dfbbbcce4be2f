// Checkpoints in memory.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "worker/trainer/checkpoint_store.h"

namespace traind {

class FakeCheckpointStore : public CheckpointStore {
 public:
  struct Saved {
    std::vector<float> parameters;
    std::vector<float> exp_avg;
    std::vector<float> exp_avg_sq;
    std::string state;
  };

  std::map<int64_t, Saved> saved;  // By step.
  absl::Status save_error;
  std::vector<std::string> skipped;

  absl::StatusOr<int64_t> Save(Adapter& adapter, const RunState& state) override {
    if (!save_error.ok()) return save_error;
    saved[state.step] = {Copy(adapter.parameters()), Copy(adapter.exp_avg()),
                         Copy(adapter.exp_avg_sq()), RunStateToJson(state)};
    return 100;
  }

  absl::StatusOr<std::optional<RestoredRun>> RestoreNewest(Adapter& adapter) override {
    if (saved.empty()) return std::optional<RestoredRun>();
    const Saved& newest = saved.rbegin()->second;
    Paste(newest.parameters, adapter.parameters());
    Paste(newest.exp_avg, adapter.exp_avg());
    Paste(newest.exp_avg_sq, adapter.exp_avg_sq());
    auto state = RunStateFromJson(newest.state);
    if (!state.ok()) return state.status();
    return std::optional<RestoredRun>(RestoredRun{*state, skipped});
  }

 private:
  static std::vector<float> Copy(absl::Span<const float> from) {
    return std::vector<float>(from.begin(), from.end());
  }
  static void Paste(const std::vector<float>& from, absl::Span<float> to) {
    std::copy(from.begin(), from.end(), to.begin());
  }
};

}  // namespace traind
