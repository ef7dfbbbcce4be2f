#include "common/jobspec/job_defaults.h"

#include <gtest/gtest.h>

#include "google/protobuf/text_format.h"
#include "google/protobuf/util/message_differencer.h"

namespace traind::jobspec {
namespace {

using google::protobuf::TextFormat;
using google::protobuf::util::MessageDifferencer;

v1::Job ParseJob(const std::string& text) {
  v1::Job job;
  EXPECT_TRUE(TextFormat::ParseFromString(text, &job)) << text;
  return job;
}

v1::Job Filled(const std::string& text) {
  v1::Job job = ParseJob(text);
  FillDefaults(&job);
  return job;
}

TEST(FillDefaultsTest, ASmallJobGetsEveryDefaultThatTheProtosName) {
  const v1::Job want = ParseJob(R"pb(
    resources { devices: 1 device_type: "cpu" max_retries: 3 }
    spec {
      base_model { path: "/m" dtype: "float32" }
      task: CAUSAL_LM
      dataset {
        train { path: "/d" format: "auto" }
        max_length: 1024
        truncation: "right"
      }
      lora {
        r: 8
        lora_alpha: 8
        lora_dropout: 0
        bias: "none"
        init_lora_weights: true
        target_modules {
          list_value {
            values { string_value: "q_proj" }
            values { string_value: "v_proj" }
          }
        }
      }
      training {
        per_device_train_batch_size: 8
        per_device_eval_batch_size: 8
        gradient_accumulation_steps: 1
        learning_rate: 2e-4
        num_train_epochs: 3
        max_steps: -1
        lr_scheduler_type: "linear"
        warmup_ratio: 0
        warmup_steps: 0
        optim: "adamw_torch"
        weight_decay: 0
        adam_beta1: 0.9
        adam_beta2: 0.999
        adam_epsilon: 1e-8
        max_grad_norm: 1
        bf16: "false"
        logging_steps: 1
        eval_strategy: "no"
        eval_steps: 1
        save_strategy: "epoch"
        save_steps: 500
        save_total_limit: 3
        seed: 42
        data_seed: 42
        loss_denominator: "hf"
      }
      parallelism { strategy: "none" }
    })pb");
  const v1::Job got = Filled(R"pb(spec {
                                    base_model { path: "/m" }
                                    dataset { train { path: "/d" } }
                                  })pb");
  std::string difference;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(want, got)) << difference;
}

TEST(FillDefaultsTest, ASecondCallChangesNothing) {
  const v1::Job once = Filled(R"pb(spec {
                                     dataset { train { path: "/d" format: "text" } }
                                     training { warmup_steps: 0.1 seed: 7 }
                                   })pb");
  v1::Job twice = once;
  FillDefaults(&twice);
  EXPECT_TRUE(MessageDifferencer::Equals(once, twice));
}

TEST(FillDefaultsTest, AZeroThatTheUserWroteStays) {
  const v1::Job job = Filled(R"pb(
    resources { max_retries: 0 devices: 0 }
    spec {
      lora { r: 0 }
      training { learning_rate: 0 max_grad_norm: 0 seed: 0 }
    })pb");
  EXPECT_EQ(job.resources().max_retries(), 0);
  EXPECT_EQ(job.resources().devices(), 0);
  EXPECT_EQ(job.spec().lora().r(), 0);
  EXPECT_EQ(job.spec().training().learning_rate(), 0);
  EXPECT_EQ(job.spec().training().max_grad_norm(), 0);
  EXPECT_EQ(job.spec().training().data_seed(), 0);
}

TEST(FillDefaultsTest, AWarmupBelowOneUpdateIsARatio) {
  const v1::Job job = Filled("spec { training { warmup_steps: 0.03 } }");
  EXPECT_EQ(job.spec().training().warmup_ratio(), 0.03);
  EXPECT_EQ(job.spec().training().warmup_steps(), 0);
}

TEST(FillDefaultsTest, AWholeWarmupStaysInUpdates) {
  const v1::Job job = Filled("spec { training { warmup_steps: 1 warmup_ratio: 0.5 } }");
  EXPECT_EQ(job.spec().training().warmup_ratio(), 0.5);
  EXPECT_EQ(job.spec().training().warmup_steps(), 1);
}

TEST(FillDefaultsTest, EvaluationFollowsTheEvalRowsAndLoggingSteps) {
  const v1::Job job = Filled(R"pb(spec {
                                    dataset { eval { path: "/e" } }
                                    training { logging_steps: 5 }
                                  })pb");
  EXPECT_EQ(job.spec().training().eval_strategy(), "epoch");
  EXPECT_EQ(job.spec().training().eval_steps(), 5);
}

TEST(FillDefaultsTest, AutoIsResolved) {
  v1::Job job = ParseJob(R"pb(resources { device_type: "auto" }
                              spec {
                                base_model { dtype: "auto" }
                                training { bf16: "auto" }
                                parallelism { strategy: "auto" }
                              })pb");
  FillDefaults(&job, "cuda");
  EXPECT_EQ(job.resources().device_type(), "cuda");
  EXPECT_EQ(job.spec().base_model().dtype(), "float32");
  EXPECT_EQ(job.spec().training().bf16(), "false");
  EXPECT_EQ(job.spec().parallelism().strategy(), "none");
}

TEST(FillDefaultsTest, NullTargetModulesAreUnset) {
  const v1::Job job = Filled("spec { lora { target_modules { null_value: NULL_VALUE } } }");
  EXPECT_EQ(job.spec().lora().target_modules().list_value().values_size(), 2);
}

TEST(FillDefaultsTest, LossOnFollowsFormatsThatAreKnown) {
  const auto loss_on = [](const std::string& files) {
    return Filled("spec { dataset { " + files + " } }").spec().dataset().loss_on();
  };
  EXPECT_EQ(loss_on(R"(train { format: "text" } eval { format: "text" })"), "all");
  EXPECT_EQ(loss_on(R"(train { format: "messages" } eval { format: "prompt_completion" })"),
            "completion");
  EXPECT_EQ(loss_on(R"(train { format: "text" } eval { format: "messages" })"), "");
  EXPECT_EQ(loss_on(R"(train { format: "auto" })"), "");
  EXPECT_EQ(loss_on(R"(loss_on: "all" train { format: "messages" })"), "all");
}

TEST(FillDefaultsTest, EveryPromptGetsALength) {
  const v1::Job job = Filled("spec { sample_prompts {} sample_prompts { max_new_tokens: 5 } }");
  EXPECT_EQ(job.spec().sample_prompts(0).max_new_tokens(), 64);
  EXPECT_EQ(job.spec().sample_prompts(1).max_new_tokens(), 5);
}

}  // namespace
}  // namespace traind::jobspec
