#include "worker/trainer/run_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/status/errors.h"

namespace traind {
namespace {

using testing::ElementsAre;

v1::TrainingSpec SmallestSpec() {
  v1::TrainingSpec spec;
  spec.mutable_base_model()->set_path("/m");
  spec.mutable_dataset()->add_train()->set_path("/rows.jsonl");
  return spec;
}

TEST(RunOptionsTest, AnEmptySpecGetsTheDocumentedDefaults) {
  const auto options = RunOptionsFromSpec(SmallestSpec());
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->dataset.max_length, 1024);
  EXPECT_EQ(options->lora.r, 8);
  EXPECT_EQ(options->plan.per_device_train_batch_size, 8);
  EXPECT_EQ(options->plan.max_steps, -1);
  EXPECT_EQ(options->plan.data_seed, 42);
  EXPECT_DOUBLE_EQ(options->trainer.schedule.peak, 2e-4);
  EXPECT_EQ(options->trainer.schedule.type, LrSchedulerType::kLinear);
  EXPECT_DOUBLE_EQ(options->trainer.optimizer.epsilon, 1e-8);
  EXPECT_DOUBLE_EQ(options->trainer.optimizer.max_grad_norm, 1);
  EXPECT_EQ(options->trainer.eval_strategy, IntervalStrategy::kNo);
  EXPECT_EQ(options->trainer.save_strategy, IntervalStrategy::kEpoch);
  EXPECT_EQ(options->trainer.loss_denominator, LossDenominator::kHf);
  EXPECT_EQ(options->save_total_limit, 3);
}

TEST(RunOptionsTest, EveryFieldIsPassedOn) {
  v1::TrainingSpec spec = SmallestSpec();
  spec.mutable_dataset()->add_eval()->set_path("/eval.jsonl");
  spec.mutable_dataset()->set_max_length(77);
  spec.mutable_dataset()->set_loss_on("all");
  spec.mutable_lora()->set_r(4);
  spec.mutable_lora()->set_lora_alpha(16);
  spec.mutable_lora()->set_lora_dropout(0.25);
  spec.mutable_lora()->set_use_rslora(true);
  v1::TrainingArguments& training = *spec.mutable_training();
  training.set_per_device_train_batch_size(3);
  training.set_per_device_eval_batch_size(5);
  training.set_gradient_accumulation_steps(6);
  training.set_learning_rate(0.5);
  training.set_max_steps(9);
  training.set_lr_scheduler_type("cosine");
  training.set_warmup_steps(2);
  training.set_weight_decay(0.1);
  training.set_adam_beta1(0.8);
  training.set_adam_beta2(0.7);
  training.set_max_grad_norm(0);
  training.set_logging_steps(11);
  training.set_eval_strategy("steps");
  training.set_eval_steps(13);
  training.set_save_strategy("no");
  training.set_seed(5);
  training.set_loss_denominator("shifted");
  training.set_sequential_rows(true);
  spec.mutable_output()->set_path("/out");
  const auto options = RunOptionsFromSpec(spec);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->eval_files.at(0).path, "/eval.jsonl");
  EXPECT_EQ(options->dataset.max_length, 77);
  EXPECT_EQ(options->dataset.loss_on, LossOn::kAll);
  EXPECT_EQ(options->lora.r, 4);
  EXPECT_DOUBLE_EQ(options->lora.lora_alpha, 16);
  EXPECT_DOUBLE_EQ(options->lora.lora_dropout, 0.25);
  EXPECT_TRUE(options->lora.use_rslora);
  EXPECT_EQ(options->lora.seed, 5u);
  EXPECT_EQ(options->plan.per_device_train_batch_size, 3);
  EXPECT_EQ(options->plan.gradient_accumulation_steps, 6);
  EXPECT_EQ(options->plan.max_steps, 9);
  EXPECT_EQ(options->plan.data_seed, 5);
  EXPECT_TRUE(options->plan.sequential_rows);
  EXPECT_EQ(options->trainer.per_device_eval_batch_size, 5);
  EXPECT_EQ(options->trainer.schedule.type, LrSchedulerType::kCosine);
  EXPECT_DOUBLE_EQ(options->trainer.schedule.peak, 0.5);
  EXPECT_DOUBLE_EQ(options->warmup_steps, 2);
  EXPECT_DOUBLE_EQ(options->trainer.optimizer.beta1, 0.8);
  EXPECT_DOUBLE_EQ(options->trainer.optimizer.beta2, 0.7);
  EXPECT_DOUBLE_EQ(options->trainer.optimizer.weight_decay, 0.1);
  EXPECT_DOUBLE_EQ(options->trainer.optimizer.max_grad_norm, 0);
  EXPECT_EQ(options->trainer.logging_steps, 11);
  EXPECT_EQ(options->trainer.eval_strategy, IntervalStrategy::kSteps);
  EXPECT_EQ(options->trainer.eval_steps, 13);
  EXPECT_EQ(options->trainer.save_strategy, IntervalStrategy::kNo);
  EXPECT_EQ(options->trainer.seed, 5u);
  EXPECT_EQ(options->trainer.loss_denominator, LossDenominator::kShifted);
  EXPECT_EQ(options->output_path, "/out");
}

TEST(RunOptionsTest, TargetModulesAreAListAnExpressionOrAllLinear) {
  v1::TrainingSpec spec = SmallestSpec();
  google::protobuf::Value& targets = *spec.mutable_lora()->mutable_target_modules();
  targets.set_string_value("all-linear");
  EXPECT_THAT(RunOptionsFromSpec(spec)->lora.target_modules, ElementsAre("all-linear"));
  EXPECT_FALSE(RunOptionsFromSpec(spec)->lora.target_is_regex);
  targets.set_string_value(".*q_proj");
  EXPECT_THAT(RunOptionsFromSpec(spec)->lora.target_modules, ElementsAre(".*q_proj"));
  EXPECT_TRUE(RunOptionsFromSpec(spec)->lora.target_is_regex);
  targets.mutable_list_value()->add_values()->set_string_value("o_proj");
  EXPECT_THAT(RunOptionsFromSpec(spec)->lora.target_modules, ElementsAre("o_proj"));
  EXPECT_FALSE(RunOptionsFromSpec(spec)->lora.target_is_regex);
}

TEST(RunOptionsTest, SamplePromptsBecomeJson) {
  v1::TrainingSpec spec = SmallestSpec();
  v1::SamplePrompt& prompt = *spec.add_sample_prompts();
  prompt.set_max_new_tokens(12);
  for (const auto& [role, content] :
       {std::pair("system", "be \"short\""), std::pair("user", "hi")}) {
    v1::ChatMessage& message = *prompt.add_messages();
    message.set_role(role);
    message.set_content(content);
  }
  const auto options = RunOptionsFromSpec(spec);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->sample_prompts.at(0).messages_json,
            R"([{"role":"system","content":"be \"short\""},{"role":"user","content":"hi"}])");
  EXPECT_EQ(options->sample_prompts[0].last_user_message, "hi");
  EXPECT_EQ(options->sample_prompts[0].max_new_tokens, 12);
}

TEST(RunOptionsTest, AllWrongFieldsAreNamedAtOnce) {
  v1::TrainingSpec spec = SmallestSpec();
  spec.mutable_lora()->set_r(0);
  spec.mutable_training()->set_learning_rate(std::numeric_limits<double>::quiet_NaN());
  spec.mutable_training()->set_per_device_train_batch_size(0);
  const absl::Status status = RunOptionsFromSpec(spec).status();
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  EXPECT_EQ(FieldViolationsOf(status).size(), 3u);
}

}  // namespace
}  // namespace traind
