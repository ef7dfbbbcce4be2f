// Everything that a run is told, as plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "traind/v1/training_spec.pb.h"
#include "worker/data/batch_plan.h"
#include "worker/data/dataset.h"
#include "worker/lora/adapter.h"
#include "worker/trainer/trainer_options.h"

namespace traind {

// A conversation that the model answers before and after the training.
struct SamplePromptOptions {
  std::string messages_json;
  std::string last_user_message;
  int64_t max_new_tokens = 64;
};

struct RunOptions {
  std::string model_path;
  std::vector<DataFile> train_files;
  std::vector<DataFile> eval_files;
  DatasetOptions dataset;
  LoraOptions lora;
  BatchPlanOptions plan;   // `rows` is filled in once they are counted.
  TrainerOptions trainer;  // The schedule's lengths are filled in once the updates are counted.
  double warmup_ratio = 0;
  double warmup_steps = 0;
  int64_t save_total_limit = 3;
  std::vector<SamplePromptOptions> sample_prompts;
  std::string run_id;  // The job's uid: whose checkpoints are resumed from.
  std::string checkpoints_dir;
  std::string adapter_dir;
  std::string output_path;  // Empty: the adapter is not copied.
  int threads = 0;          // 0: all physical cores.
};

// Fills defaults, checks every field and converts; folders, job name, run id and threads are the
// caller's.
// Errors: INVALID_ARGUMENT (INVALID_FIELD) with every wrong field.
absl::StatusOr<RunOptions> RunOptionsFromSpec(const v1::TrainingSpec& spec);

}  // namespace traind
