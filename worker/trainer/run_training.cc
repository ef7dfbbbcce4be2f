#include "worker/trainer/run_training.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "worker/export/peft_adapter.h"
#include "worker/lora/adapter_layout.h"
#include "worker/model/causal_lm.h"
#include "worker/trainer/cpu_info.h"
#include "worker/trainer/file_checkpoint_store.h"
#include "worker/trainer/run_inputs.h"
#include "worker/trainer/torch_guard.h"
#include "worker/trainer/torch_runtime.h"

namespace traind {
namespace {

// Everything that is known before weights are read.
struct PreparedRun {
  ModelConfig config;
  std::unique_ptr<WeightSource> weights;  // Released once the model has read it.
  TextModel text;
  RunRows rows;
  SampleQuestions samples;  // Borrows `text`: hence on the heap and not copied.
  AdapterLayout layout;
};

absl::StatusOr<std::unique_ptr<PreparedRun>> Prepare(const RunOptions& options,
                                                     const StopFlag& stop) {
  auto run = std::make_unique<PreparedRun>();
  TRAIND_RETURN_IF_ERROR(CheckPaths(options));
  TRAIND_ASSIGN_OR_RETURN(run->weights, OpenWeights(options.model_path));
  run->config = run->weights->config();
  TRAIND_ASSIGN_OR_RETURN(run->text, LoadTextModel(options.model_path));
  TRAIND_ASSIGN_OR_RETURN(run->samples, PrepareSamples(options.sample_prompts, run->text));
  TRAIND_ASSIGN_OR_RETURN(run->rows, LoadRows(options, run->text, run->config, stop));
  TRAIND_ASSIGN_OR_RETURN(run->layout, BuildAdapterLayout(run->config, options.lora));
  return run;
}

absl::StatusOr<BatchPlan> MakePlan(const RunOptions& options, const PreparedRun& run) {
  BatchPlanOptions plan = options.plan;
  plan.rows = static_cast<int64_t>(run.rows.train.examples.size());
  return BatchPlan::Create(plan);
}

void ReportInputs(const PreparedRun& run, const BatchPlan& plan, ReportSink& sink) {
  for (const std::string& warning : InputWarnings(run.rows, run.layout, run.config)) {
    v1::Notice notice;
    notice.set_severity(v1::Notice::WARNING);
    notice.set_message(warning);
    sink.OnNotice(notice);
  }
  sink.OnPlan(DescribePlan(run.rows, plan, run.layout, run.config));
}

TrainerOptions CompleteSchedule(const RunOptions& options, const BatchPlan& plan) {
  TrainerOptions trainer = options.trainer;
  trainer.schedule.total_steps = plan.total_steps();
  trainer.schedule.warmup_steps =
      WarmupSteps(plan.total_steps(), options.warmup_ratio, options.warmup_steps);
  return trainer;
}

using NamedFiles = std::vector<std::pair<std::string, std::string>>;

// What WriteTokenizerFiles writes, as names and contents. `scratch` is made and removed.
absl::StatusOr<NamedFiles> TokenizerFiles(const TextModel& text, const std::string& scratch) {
  TRAIND_RETURN_IF_ERROR(RemoveAll(scratch));
  TRAIND_RETURN_IF_ERROR(CreateDirectories(scratch));
  TRAIND_RETURN_IF_ERROR(WriteTokenizerFiles(text, scratch));
  NamedFiles files;
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(scratch));
  for (const std::string& name : names) {
    TRAIND_ASSIGN_OR_RETURN(std::string contents, ReadFile(absl::StrCat(scratch, "/", name)));
    files.emplace_back(name, std::move(contents));
  }
  TRAIND_RETURN_IF_ERROR(RemoveAll(scratch));
  return files;
}

// Publishes the adapter in the job's folder and, if asked for, a copy elsewhere.
absl::Status Export(const RunOptions& options, const PreparedRun& run, const Adapter& adapter,
                    const AdapterPublication& publication) {
  const PeftBase base{options.model_path, run.config};
  for (const std::string* folder : {&options.adapter_dir, &options.output_path}) {
    if (folder->empty()) continue;
    TRAIND_RETURN_IF_ERROR(
        PublishPeftAdapter(*folder, adapter.layout(), adapter.parameters(), base, publication)
            .status());
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainingEnd> TrainAndExport(const RunOptions& options, PreparedRun& run,
                                           BatchPlan& plan, ReportSink& sink,
                                           const StopFlag& stop) {
  const SystemClock clock;
  Adapter adapter(run.layout);
  InitializeLora(adapter);
  sink.OnPhase(v1::Attempt::LOADING_MODEL);
  TRAIND_ASSIGN_OR_RETURN(const auto model, CausalLm::Load(*run.weights, &adapter));
  run.weights.reset();
  FileCheckpointStore checkpoints({options.checkpoints_dir,
                                   options.run_id,
                                   {options.model_path, run.config},
                                   options.save_total_limit},
                                  plan, clock);
  Trainer trainer(CompleteSchedule(options, plan),
                  {*model, adapter, plan, run.rows.train.examples, run.rows.eval.examples,
                   run.samples, checkpoints, sink, stop, clock});
  TRAIND_ASSIGN_OR_RETURN(const TrainingEnd end, trainer.Run());
  if (end == TrainingEnd::kStopped) return end;
  sink.OnPhase(v1::Attempt::EXPORTING);
  AdapterPublication publication{plan.total_steps(), options.run_id, clock.Now(), {}};
  TRAIND_ASSIGN_OR_RETURN(
      publication.extra_files,
      TokenizerFiles(run.text, absl::StrCat(options.adapter_dir, ".tokenizer")));
  TRAIND_RETURN_IF_ERROR(Export(options, run, adapter, publication));
  return end;
}

absl::StatusOr<TrainingEnd> Run(const RunOptions& options, ReportSink& sink, const StopFlag& stop) {
  SetUpTorch(options.threads > 0 ? options.threads : PhysicalCores());
  sink.OnPhase(v1::Attempt::LOADING_DATA);
  auto prepared = Prepare(options, stop);
  // Asked to stop while rows were read: there is nothing to save yet.
  if (absl::IsCancelled(prepared.status())) return TrainingEnd::kStopped;
  if (!prepared.ok()) return prepared.status();
  TRAIND_ASSIGN_OR_RETURN(BatchPlan plan, MakePlan(options, **prepared));
  ReportInputs(**prepared, plan, sink);
  return TrainAndExport(options, **prepared, plan, sink, stop);
}

}  // namespace

absl::StatusOr<TrainingEnd> RunTraining(const RunOptions& options, ReportSink& sink,
                                        const StopFlag& stop) {
  return CatchExceptions([&] { return Run(options, sink, stop); });
}

}  // namespace traind
