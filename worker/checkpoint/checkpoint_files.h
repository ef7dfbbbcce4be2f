// What a checkpoint holds. No LibTorch.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "worker/lora/adapter.h"

namespace traind {

inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kTrainerStateFile[] = "trainer_state.json";
inline constexpr char kRunStateFile[] = "run_state.json";

// Where the run stands.
struct TrainingState {
  int64_t step = 0;  // global_step.
  double epoch = 0;
  int64_t max_steps = 0;
  // What an exact resume needs besides the buffers: a JSON object that only the trainer reads.
  std::string run_state = "{}";
};

// Borrowed for one save.
struct CheckpointContents {
  const AdapterLayout& layout;
  absl::Span<const float> parameters;
  absl::Span<const float> exp_avg;
  absl::Span<const float> exp_avg_sq;
  TrainingState state;
};

// Where a restore puts the buffers. Borrowed.
struct CheckpointBuffers {
  const AdapterLayout& layout;
  absl::Span<float> parameters;
  absl::Span<float> exp_avg;
  absl::Span<float> exp_avg_sq;
};

}  // namespace traind
