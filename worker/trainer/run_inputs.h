// What a run reads before it has weights: each part checked on its own, cheap ones first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "traind/v1/job.pb.h"
#include "worker/data/dataset.h"
#include "worker/lora/adapter.h"
#include "worker/model/weight_source.h"
#include "worker/text/text_model.h"
#include "worker/trainer/evaluation.h"
#include "worker/trainer/run_options.h"
#include "worker/trainer/stop_flag.h"

namespace traind {

// Whether every file that the run reads is there and the folders that it writes can be made.
// Errors: MODEL_NOT_FOUND, DATASET_NOT_FOUND, OUTPUT_FAILED; metadata `path` and `field`.
absl::Status CheckPaths(const RunOptions& options);

struct RunRows {
  Dataset train;
  Dataset eval;  // Empty if there are no eval files.
};

// Reads and tokenises all rows. Errors: as LoadDataset; MODEL_INVALID if a row has a token that
// the model's vocabulary lacks; CANCELLED once `stop` asks to stop.
absl::StatusOr<RunRows> LoadRows(const RunOptions& options, const TextModel& text,
                                 const ModelConfig& config, const StopFlag& stop);

// Errors: TEXT_INVALID, with the prompt's index. `text` is borrowed by the result.
absl::StatusOr<SampleQuestions> PrepareSamples(const std::vector<SamplePromptOptions>& prompts,
                                               const TextModel& text);

// What the user should know before the first update, one sentence each.
std::vector<std::string> InputWarnings(const RunRows& rows, const AdapterLayout& layout,
                                       const ModelConfig& config);

// The counts that are reported before the first update.
v1::TrainingPlan DescribePlan(const RunRows& rows, const BatchPlan& plan,
                              const AdapterLayout& layout, const ModelConfig& config);

}  // namespace traind
