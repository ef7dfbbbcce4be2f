#include "worker/trainer/run_inputs.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/jobspec/path_check.h"
#include "common/modelspec/model_tensors.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind {
namespace {

absl::Status CheckFiles(const std::vector<DataFile>& files, const char* field) {
  for (size_t i = 0; i < files.size(); ++i) {
    TRAIND_RETURN_IF_ERROR(
        jobspec::CheckReadable(files[i].path, jobspec::PathKind::kFile, Reason::kDatasetNotFound,
                               absl::StrCat("job.spec.dataset.", field, "[", i, "].path")));
  }
  return absl::OkStatus();
}

// Whether `folder` can be written or made: its nearest ancestor that exists must allow it.
absl::Status CheckWritable(const std::string& folder) {
  std::filesystem::path at = folder;
  while (!FileExists(at.string()) && at != at.parent_path()) at = at.parent_path();
  if (::access(at.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return ErrnoError(errno, Reason::kOutputFailed, "write into", folder);
}

absl::Status CheckVocabulary(const Dataset& dataset, const ModelConfig& config) {
  int32_t largest = 0;
  for (const Example& row : dataset.examples) {
    largest = std::max(largest, *std::max_element(row.input_ids.begin(), row.input_ids.end()));
  }
  if (largest < config.vocab_size) return absl::OkStatus();
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kModelInvalid,
               absl::StrCat("the tokenizer gives token ", largest, ", but the model has only ",
                            config.vocab_size, " embeddings; the two do not belong together"),
               {{"token", absl::StrCat(largest)}, {"vocab_size", absl::StrCat(config.vocab_size)}});
}

int64_t LongestRow(const Dataset& dataset) {
  size_t longest = 0;
  for (const Example& row : dataset.examples) longest = std::max(longest, row.input_ids.size());
  return static_cast<int64_t>(longest);
}

}  // namespace

absl::Status CheckPaths(const RunOptions& options) {
  TRAIND_RETURN_IF_ERROR(
      jobspec::CheckReadable(options.model_path, jobspec::PathKind::kFileOrFolder,
                             Reason::kModelNotFound, "job.spec.base_model.path"));
  TRAIND_RETURN_IF_ERROR(CheckFiles(options.train_files, "train"));
  TRAIND_RETURN_IF_ERROR(CheckFiles(options.eval_files, "eval"));
  for (const std::string* folder :
       {&options.checkpoints_dir, &options.adapter_dir, &options.output_path}) {
    if (!folder->empty()) TRAIND_RETURN_IF_ERROR(CheckWritable(*folder));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunRows> LoadRows(const RunOptions& options, const TextModel& text,
                                 const ModelConfig& config, const StopFlag& stop) {
  DatasetOptions dataset = options.dataset;
  dataset.on_progress = [&stop](int64_t) {
    return stop.kind() == StopKind::kNone ? absl::OkStatus()
                                          : absl::CancelledError("asked to stop");
  };
  RunRows rows;
  TRAIND_ASSIGN_OR_RETURN(rows.train, LoadDataset(options.train_files, text, dataset));
  TRAIND_RETURN_IF_ERROR(CheckVocabulary(rows.train, config));
  if (options.eval_files.empty()) return rows;
  auto eval = LoadDataset(options.eval_files, text, dataset);
  if (!eval.ok()) return WithContext(eval.status(), "dataset.eval");
  rows.eval = *std::move(eval);
  TRAIND_RETURN_IF_ERROR(CheckVocabulary(rows.eval, config));
  return rows;
}

absl::StatusOr<SampleQuestions> PrepareSamples(const std::vector<SamplePromptOptions>& prompts,
                                               const TextModel& text) {
  SampleQuestions samples;
  samples.stop_ids = text.StopIds();
  samples.decode = [&text](absl::Span<const int32_t> ids) {
    return text.tokenizer->Decode(ids, /*skip_special_tokens=*/true);
  };
  for (size_t i = 0; i < prompts.size(); ++i) {
    auto ids = text.EncodePrompt(prompts[i].messages_json);
    if (!ids.ok()) return WithContext(ids.status(), absl::StrCat("sample_prompts[", i, "]"));
    samples.questions.push_back(
        {prompts[i].last_user_message, *std::move(ids), prompts[i].max_new_tokens});
  }
  return samples;
}

std::vector<std::string> InputWarnings(const RunRows& rows, const AdapterLayout& layout,
                                       const ModelConfig& config) {
  std::vector<std::string> warnings = rows.train.report.warnings;
  for (const std::string& warning : rows.eval.report.warnings) {
    warnings.push_back(absl::StrCat("eval rows: ", warning));
  }
  for (const std::string& target : layout.unused_targets) {
    warnings.push_back(absl::StrCat("lora.target_modules: `", target, "` matches no module"));
  }
  const int64_t longest = std::max(LongestRow(rows.train), LongestRow(rows.eval));
  if (config.max_position_embeddings > 0 && longest > config.max_position_embeddings) {
    warnings.push_back(absl::StrCat(
        "the longest row has ", longest, " tokens, but the model was made for ",
        config.max_position_embeddings, "; lower dataset.max_length to cut such rows"));
  }
  return warnings;
}

v1::TrainingPlan DescribePlan(const RunRows& rows, const BatchPlan& plan,
                              const AdapterLayout& layout, const ModelConfig& config) {
  const DatasetReport& report = rows.train.report;
  v1::TrainingPlan description;
  description.set_rows_kept(report.rows_kept);
  for (const auto& [reason, count] : report.rows_dropped) {
    (*description.mutable_rows_dropped())[reason] = count;
  }
  description.set_rows_truncated(report.rows_truncated);
  description.set_tokens(report.tokens);
  description.set_supervised_tokens(report.supervised_tokens);
  description.set_eval_rows(static_cast<int64_t>(rows.eval.examples.size()));
  description.set_steps_per_epoch(plan.steps_per_epoch());
  description.set_total_steps(plan.total_steps());
  description.set_trainable_parameters(layout.size);
  description.set_total_parameters(CountParameters(config) + layout.size);
  return description;
}

}  // namespace traind
