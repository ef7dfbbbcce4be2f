// A folder of checkpoints of the tiny adapter.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/tiny_adapter.h"
#include "worker/checkpoint/checkpoint_reader.h"
#include "worker/checkpoint/checkpoint_writer.h"

namespace traind {

class CheckpointFixture {
 public:
  explicit CheckpointFixture(std::string directory, int64_t keep_last = 0,
                             std::string run_id = "run-1")
      : options_{std::move(directory), std::move(run_id),
                 PeftBase{"/models/tinyllama", TinyLlamaConfig()}, keep_last} {}

  // Saves numbers that follow from `step`.
  absl::StatusOr<SavedCheckpoint> Save(int64_t step, absl::Time time = absl::UnixEpoch()) const {
    const double seed = static_cast<double>(step);
    const std::vector<float> parameters = Waves(layout_.size, seed);
    const std::vector<float> exp_avg = Waves(layout_.size, seed + 0.25);
    const std::vector<float> exp_avg_sq = Waves(layout_.size, seed + 0.5);
    const TrainingState state{step, seed / 4, 100, absl::StrCat("{\"step\": ", step, "}")};
    return CheckpointWriter(options_).Write({layout_, parameters, exp_avg, exp_avg_sq, state},
                                            time);
  }

  absl::StatusOr<CheckpointSearch> Find() const {
    return FindNewestValidCheckpoint(options_.directory, options_.run_id);
  }

  // True if the checkpoint holds what Save(step) wrote, bit for bit.
  bool Holds(const std::string& path, int64_t step) const {
    const auto count = static_cast<size_t>(layout_.size);
    std::vector<float> parameters(count), exp_avg(count), exp_avg_sq(count);
    const auto state = ReadCheckpoint(path, {layout_, absl::MakeSpan(parameters),
                                             absl::MakeSpan(exp_avg), absl::MakeSpan(exp_avg_sq)});
    const double seed = static_cast<double>(step);
    return state.ok() && state->step == step && state->epoch == seed / 4 &&
           state->max_steps == 100 && state->run_state == absl::StrCat("{\"step\": ", step, "}") &&
           parameters == Waves(layout_.size, seed) && exp_avg == Waves(layout_.size, seed + 0.25) &&
           exp_avg_sq == Waves(layout_.size, seed + 0.5);
  }

  AdapterLayout& layout() { return layout_; }
  std::string Path(int64_t step) const {
    return absl::StrCat(options_.directory, "/checkpoint-", step);
  }

 private:
  CheckpointOptions options_;
  AdapterLayout layout_ = TinyAdapterLayout();
};

}  // namespace traind
