#include "worker/trainer/run_options.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/jobspec/job_defaults.h"
#include "common/jobspec/job_validation.h"
#include "common/status/errors.h"

namespace traind {
namespace {

absl::StatusOr<std::vector<DataFile>> ToDataFiles(
    const google::protobuf::RepeatedPtrField<v1::DataFile>& files) {
  std::vector<DataFile> result;
  for (const v1::DataFile& file : files) {
    TRAIND_ASSIGN_OR_RETURN(const RowFormat format, RowFormatFromName(file.format()));
    result.push_back({file.path(), format});
  }
  return result;
}

LoraOptions ToLora(const v1::LoraConfig& config, int64_t seed) {
  LoraOptions lora;
  lora.r = config.r();
  lora.lora_alpha = config.lora_alpha();
  lora.lora_dropout = config.lora_dropout();
  lora.use_rslora = config.use_rslora();
  lora.init_lora_weights = config.init_lora_weights();
  lora.seed = static_cast<uint64_t>(seed);
  const google::protobuf::Value& targets = config.target_modules();
  if (targets.has_string_value()) {
    lora.target_modules = {targets.string_value()};
    lora.target_is_regex = targets.string_value() != "all-linear";
  }
  for (const auto& name : targets.list_value().values()) {
    lora.target_modules.push_back(name.string_value());
  }
  return lora;
}

// REQUIRES: validated.
IntervalStrategy ToStrategy(const std::string& name) {
  if (name == "steps") return IntervalStrategy::kSteps;
  return name == "epoch" ? IntervalStrategy::kEpoch : IntervalStrategy::kNo;
}

absl::StatusOr<TrainerOptions> ToTrainer(const v1::TrainingArguments& training) {
  TrainerOptions options;
  options.optimizer = {training.adam_beta1(), training.adam_beta2(), training.adam_epsilon(),
                       training.weight_decay(), training.max_grad_norm()};
  TRAIND_ASSIGN_OR_RETURN(options.schedule.type,
                          LrSchedulerTypeFromName(training.lr_scheduler_type()));
  options.schedule.peak = training.learning_rate();
  options.loss_denominator =
      training.loss_denominator() == "shifted" ? LossDenominator::kShifted : LossDenominator::kHf;
  options.seed = static_cast<uint64_t>(training.seed());
  options.per_device_eval_batch_size = training.per_device_eval_batch_size();
  options.logging_steps = training.logging_steps();
  options.eval_strategy = ToStrategy(training.eval_strategy());
  options.eval_steps = training.eval_steps();
  options.save_strategy = ToStrategy(training.save_strategy());
  options.save_steps = training.save_steps();
  return options;
}

BatchPlanOptions ToPlan(const v1::TrainingArguments& training) {
  BatchPlanOptions plan;
  plan.per_device_train_batch_size = training.per_device_train_batch_size();
  plan.gradient_accumulation_steps = training.gradient_accumulation_steps();
  plan.num_train_epochs = training.num_train_epochs();
  plan.max_steps = training.max_steps();
  plan.data_seed = training.data_seed();
  plan.sequential_rows = training.sequential_rows();
  return plan;
}

SamplePromptOptions ToSamplePrompt(const v1::SamplePrompt& prompt) {
  SamplePromptOptions options;
  options.max_new_tokens = prompt.max_new_tokens();
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (const v1::ChatMessage& message : prompt.messages()) {
    messages.push_back({{"role", message.role()}, {"content", message.content()}});
    if (message.role() == "user") options.last_user_message = message.content();
  }
  options.messages_json = messages.dump();
  return options;
}

}  // namespace

absl::StatusOr<RunOptions> RunOptionsFromSpec(const v1::TrainingSpec& given) {
  v1::Job job;
  *job.mutable_spec() = given;
  jobspec::FillDefaults(&job);
  jobspec::ValidationContext context;
  context.check_files = false;  // RunTraining looks at the files.
  TRAIND_RETURN_IF_ERROR(jobspec::ValidateJob(job, context));
  const v1::TrainingSpec& spec = job.spec();
  RunOptions options;
  options.model_path = spec.base_model().path();
  TRAIND_ASSIGN_OR_RETURN(options.train_files, ToDataFiles(spec.dataset().train()));
  TRAIND_ASSIGN_OR_RETURN(options.eval_files, ToDataFiles(spec.dataset().eval()));
  options.dataset.max_length = spec.dataset().max_length();
  TRAIND_ASSIGN_OR_RETURN(options.dataset.loss_on, LossOnFromName(spec.dataset().loss_on()));
  options.lora = ToLora(spec.lora(), spec.training().seed());
  options.plan = ToPlan(spec.training());
  TRAIND_ASSIGN_OR_RETURN(options.trainer, ToTrainer(spec.training()));
  options.warmup_ratio = spec.training().warmup_ratio();
  options.warmup_steps = spec.training().warmup_steps();
  options.save_total_limit = spec.training().save_total_limit();
  for (const v1::SamplePrompt& prompt : spec.sample_prompts()) {
    options.sample_prompts.push_back(ToSamplePrompt(prompt));
  }
  options.output_path = spec.output().path();
  return options;
}

}  // namespace traind
