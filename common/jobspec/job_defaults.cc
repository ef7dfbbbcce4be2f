#include "common/jobspec/job_defaults.h"

#include <algorithm>

#include "google/protobuf/struct.pb.h"

namespace traind::jobspec {
namespace {

void SetIfEmpty(std::string* text, const char* value) {
  if (text->empty()) *text = value;
}

// The same for `auto`.
void Resolve(std::string* text, const std::string& value) {
  if (text->empty() || *text == "auto") *text = value;
}

// `optional` fields of `message`, so that 0 stays 0.
#define TRAIND_DEFAULT(message, field, value) \
  if (!(message)->has_##field()) (message)->set_##field(value)

// What can be said before a row was read.
void FillLossOn(v1::Dataset* dataset) {
  if (!dataset->loss_on().empty()) return;
  bool all_text = true, no_text = true;
  for (const auto* files : {&dataset->train(), &dataset->eval()}) {
    for (const v1::DataFile& file : *files) {
      if (file.format() == "auto") return;
      (file.format() == "text" ? no_text : all_text) = false;
    }
  }
  if (all_text != no_text) dataset->set_loss_on(all_text ? "all" : "completion");
}

void FillDataset(v1::Dataset* dataset) {
  TRAIND_DEFAULT(dataset, max_length, 1024);
  SetIfEmpty(dataset->mutable_truncation(), "right");
  for (v1::DataFile& file : *dataset->mutable_train()) SetIfEmpty(file.mutable_format(), "auto");
  for (v1::DataFile& file : *dataset->mutable_eval()) SetIfEmpty(file.mutable_format(), "auto");
  FillLossOn(dataset);
}

void FillLora(v1::LoraConfig* lora) {
  TRAIND_DEFAULT(lora, r, 8);
  TRAIND_DEFAULT(lora, lora_alpha, 8);
  TRAIND_DEFAULT(lora, lora_dropout, 0);
  TRAIND_DEFAULT(lora, init_lora_weights, true);
  SetIfEmpty(lora->mutable_bias(), "none");
  const auto kind = lora->target_modules().kind_case();
  if (kind == google::protobuf::Value::KIND_NOT_SET ||
      kind == google::protobuf::Value::kNullValue) {
    auto* names = lora->mutable_target_modules()->mutable_list_value();
    names->add_values()->set_string_value("q_proj");
    names->add_values()->set_string_value("v_proj");
  }
}

void FillOptimizer(v1::TrainingArguments* training) {
  TRAIND_DEFAULT(training, per_device_train_batch_size, 8);
  TRAIND_DEFAULT(training, per_device_eval_batch_size, 8);
  TRAIND_DEFAULT(training, gradient_accumulation_steps, 1);
  TRAIND_DEFAULT(training, learning_rate, 2e-4);
  TRAIND_DEFAULT(training, weight_decay, 0);
  TRAIND_DEFAULT(training, adam_beta1, 0.9);
  TRAIND_DEFAULT(training, adam_beta2, 0.999);
  TRAIND_DEFAULT(training, adam_epsilon, 1e-8);
  TRAIND_DEFAULT(training, max_grad_norm, 1);
  SetIfEmpty(training->mutable_optim(), "adamw_torch");
  Resolve(training->mutable_bf16(), "false");
  SetIfEmpty(training->mutable_loss_denominator(), "hf");
}

void FillSchedule(bool has_eval_rows, v1::TrainingArguments* training) {
  TRAIND_DEFAULT(training, num_train_epochs, 3);
  TRAIND_DEFAULT(training, max_steps, -1);
  SetIfEmpty(training->mutable_lr_scheduler_type(), "linear");
  // Newer Transformers write a ratio into `warmup_steps`.
  if (training->warmup_steps() > 0 && training->warmup_steps() < 1) {
    training->set_warmup_ratio(training->warmup_steps());
    training->set_warmup_steps(0);
  }
  TRAIND_DEFAULT(training, warmup_ratio, 0);
  TRAIND_DEFAULT(training, warmup_steps, 0);
  TRAIND_DEFAULT(training, logging_steps, 1);
  SetIfEmpty(training->mutable_eval_strategy(), has_eval_rows ? "epoch" : "no");
  // A wrong `logging_steps` is reported once.
  TRAIND_DEFAULT(training, eval_steps, std::max<int64_t>(1, training->logging_steps()));
  SetIfEmpty(training->mutable_save_strategy(), "epoch");
  TRAIND_DEFAULT(training, save_steps, 500);
  TRAIND_DEFAULT(training, save_total_limit, 3);
  TRAIND_DEFAULT(training, seed, 42);
  TRAIND_DEFAULT(training, data_seed, training->seed());
}

}  // namespace

void FillDefaults(v1::Job* job, const std::string& device_type) {
  v1::Resources* resources = job->mutable_resources();
  TRAIND_DEFAULT(resources, devices, 1);
  TRAIND_DEFAULT(resources, max_retries, 3);
  Resolve(resources->mutable_device_type(), device_type);

  v1::TrainingSpec* spec = job->mutable_spec();
  Resolve(spec->mutable_base_model()->mutable_dtype(), "float32");
  if (spec->task() == v1::TASK_UNSPECIFIED) spec->set_task(v1::CAUSAL_LM);
  FillDataset(spec->mutable_dataset());
  FillLora(spec->mutable_lora());
  FillOptimizer(spec->mutable_training());
  FillSchedule(!spec->dataset().eval().empty(), spec->mutable_training());
  Resolve(spec->mutable_parallelism()->mutable_strategy(), "none");
  for (v1::SamplePrompt& prompt : *spec->mutable_sample_prompts()) {
    v1::SamplePrompt* mutable_prompt = &prompt;
    TRAIND_DEFAULT(mutable_prompt, max_new_tokens, 64);
  }
}

#undef TRAIND_DEFAULT

}  // namespace traind::jobspec
