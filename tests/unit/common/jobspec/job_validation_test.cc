#include "common/jobspec/job_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/jobspec/job_defaults.h"
#include "common/status/errors.h"
#include "google/protobuf/text_format.h"

namespace traind::jobspec {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr char kSmallJob[] = R"pb(
  spec {
    base_model { path: "/models/m" }
    dataset { train { path: "/data/d.jsonl" } }
  })pb";

// The small job with `extra` merged into it, as a client on another machine checks it.
absl::Status Check(const std::string& extra) {
  v1::Job job;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kSmallJob, &job));
  EXPECT_TRUE(google::protobuf::TextFormat::MergeFromString(extra, &job)) << extra;
  FillDefaults(&job);
  return ValidateJob(job, {.allowed_roots = {}, .check_files = false});
}

std::string WrongFields(const absl::Status& status) {
  return absl::StrJoin(FieldViolationsOf(status), " ", [](std::string* out, const auto& wrong) {
    absl::StrAppend(out, wrong.field);
  });
}

struct Case {
  const char* name;
  std::string job;
  const char* field;  // Empty: the job is right.
  const char* text;   // In the description.
};

std::string CaseName(const testing::TestParamInfo<Case>& info) { return info.param.name; }

class ValidateFieldTest : public testing::TestWithParam<Case> {};

TEST_P(ValidateFieldTest, IsAcceptedOrNamed) {
  const absl::Status status = Check(GetParam().job);
  EXPECT_EQ(WrongFields(status), GetParam().field) << status;
  if (std::string(GetParam().field).empty()) {
    EXPECT_TRUE(status.ok()) << status;
    return;
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  EXPECT_THAT(FieldViolationsOf(status)[0].description, HasSubstr(GetParam().text));
}

std::string Training(const std::string& fields) { return "spec { training { " + fields + " } }"; }
std::string Lora(const std::string& fields) { return "spec { lora { " + fields + " } }"; }
std::string Data(const std::string& fields) { return "spec { dataset { " + fields + " } }"; }
std::string Resource(const std::string& fields) { return "resources { " + fields + " }"; }
std::string Long(size_t size) { return std::string(size, 'x'); }

#define TRAINING "job.spec.training."
INSTANTIATE_TEST_SUITE_P(
    Training, ValidateFieldTest,
    testing::Values(
        Case{"lr_zero", Training("learning_rate: 0"), "", ""},
        Case{"lr_nan", Training("learning_rate: nan"), TRAINING "learning_rate", "got nan"},
        Case{"lr_inf", Training("learning_rate: inf"), TRAINING "learning_rate", "got inf"},
        Case{"lr_negative", Training("learning_rate: -1e-9"), TRAINING "learning_rate", "-1e-09"},
        Case{"batch_low", Training("per_device_train_batch_size: 1"), "", ""},
        Case{"batch_zero", Training("per_device_train_batch_size: 0"),
             TRAINING "per_device_train_batch_size", "in [1, 65536]; got 0"},
        Case{"batch_high", Training("per_device_train_batch_size: 65536"), "", ""},
        Case{"batch_above", Training("per_device_train_batch_size: 65537"),
             TRAINING "per_device_train_batch_size", "65537"},
        Case{"eval_batch_zero", Training("per_device_eval_batch_size: 0"),
             TRAINING "per_device_eval_batch_size", "got 0"},
        Case{"accumulation_zero", Training("gradient_accumulation_steps: 0"),
             TRAINING "gradient_accumulation_steps", "got 0"},
        Case{"accumulation_negative", Training("gradient_accumulation_steps: -4"),
             TRAINING "gradient_accumulation_steps", "got -4"},
        Case{"epochs_part", Training("num_train_epochs: 0.25"), "", ""},
        Case{"epochs_zero", Training("num_train_epochs: 0"), TRAINING "num_train_epochs",
             "(0, inf)"},
        Case{"epochs_inf", Training("num_train_epochs: inf"), TRAINING "num_train_epochs", "inf"},
        Case{"max_steps_unset", Training("max_steps: -1"), "", ""},
        Case{"max_steps_low", Training("max_steps: -2"), TRAINING "max_steps", "at least -1"},
        Case{"scheduler_cosine", Training("lr_scheduler_type: 'cosine'"), "", ""},
        Case{"scheduler_slip", Training("lr_scheduler_type: 'cosin'"), TRAINING "lr_scheduler_type",
             "did you mean `cosine`?"},
        Case{"scheduler_other", Training("lr_scheduler_type: 'wsd'"), TRAINING "lr_scheduler_type",
             "linear, cosine, constant, constant_with_warmup"},
        Case{"warmup_ratio_one", Training("warmup_ratio: 1"), "", ""},
        Case{"warmup_ratio_above", Training("warmup_ratio: 1.01"), TRAINING "warmup_ratio",
             "[0, 1]"},
        Case{"warmup_ratio_nan", Training("warmup_ratio: nan"), TRAINING "warmup_ratio", "nan"},
        Case{"warmup_steps_share", Training("warmup_steps: 0.5"), "", ""},
        Case{"warmup_steps_whole", Training("warmup_steps: 100"), "", ""},
        Case{"warmup_steps_fraction", Training("warmup_steps: 2.5"), TRAINING "warmup_steps",
             "whole number"},
        Case{"warmup_steps_negative", Training("warmup_steps: -1"), TRAINING "warmup_steps", "-1"},
        Case{"optim", Training("optim: 'adamw_8bit'"), TRAINING "optim", "adamw_torch"},
        Case{"decay_negative", Training("weight_decay: -0.1"), TRAINING "weight_decay", "-0.1"},
        Case{"beta1_one", Training("adam_beta1: 1"), TRAINING "adam_beta1", "[0, 1)"},
        Case{"beta2_one", Training("adam_beta2: 1"), TRAINING "adam_beta2", "[0, 1)"},
        Case{"beta2_zero", Training("adam_beta2: 0"), "", ""},
        Case{"epsilon_zero", Training("adam_epsilon: 0"), TRAINING "adam_epsilon", "(0, inf)"},
        Case{"norm_zero", Training("max_grad_norm: 0"), "", ""},
        Case{"norm_negative", Training("max_grad_norm: -1"), TRAINING "max_grad_norm", "-1"},
        Case{"bf16_true", Training("bf16: 'true'"), TRAINING "bf16", "auto, false"},
        Case{"logging_zero", Training("logging_steps: 0"), TRAINING "logging_steps", "at least 1"},
        Case{"eval_without_rows", Training("eval_strategy: 'steps'"), TRAINING "eval_strategy",
             "job.spec.dataset.eval"},
        Case{"eval_steps_zero", Training("eval_steps: 0"), TRAINING "eval_steps", "at least 1"},
        Case{"save_slip", Training("save_strategy: 'step'"), TRAINING "save_strategy", "`steps`"},
        Case{"save_steps_zero", Training("save_steps: 0"), TRAINING "save_steps", "got 0"},
        Case{"save_limit_zero", Training("save_total_limit: 0"), TRAINING "save_total_limit", "0"},
        Case{"seed_negative", Training("seed: -1"), "", ""},
        Case{"denominator", Training("loss_denominator: 'mean'"), TRAINING "loss_denominator",
             "hf, shifted"}),
    CaseName);

#define LORA "job.spec.lora."
INSTANTIATE_TEST_SUITE_P(
    Lora, ValidateFieldTest,
    testing::Values(
        Case{"r_low", Lora("r: 1"), "", ""}, Case{"r_zero", Lora("r: 0"), LORA "r", "got 0"},
        Case{"r_high", Lora("r: 4096"), "", ""},
        Case{"r_above", Lora("r: 4097"), LORA "r", "[1, 4096]"},
        Case{"alpha_zero", Lora("lora_alpha: 0"), LORA "lora_alpha", "(0, inf)"},
        Case{"alpha_nan", Lora("lora_alpha: nan"), LORA "lora_alpha", "nan"},
        Case{"dropout_high", Lora("lora_dropout: 0.99"), "", ""},
        Case{"dropout_one", Lora("lora_dropout: 1"), LORA "lora_dropout", "[0, 1)"},
        Case{"bias", Lora("bias: 'all'"), LORA "bias", "none"},
        Case{"init", Lora("init_lora_weights: false"), LORA "init_lora_weights", "must be true"},
        Case{"modules_all", Lora("target_modules { string_value: 'all-linear' }"), "", ""},
        Case{"modules_empty", Lora("target_modules { string_value: '' }"), LORA "target_modules",
             "empty string"},
        Case{"modules_number", Lora("target_modules { number_value: 3 }"), LORA "target_modules",
             "list of module names"},
        Case{"modules_struct", Lora("target_modules { struct_value {} }"), LORA "target_modules",
             "list of module names"},
        Case{"modules_none", Lora("target_modules { list_value {} }"), LORA "target_modules",
             "list is empty"},
        Case{"modules_twice",
             Lora("target_modules { list_value { values { string_value: 'a' } "
                  "values { string_value: 'a' } } }"),
             LORA "target_modules[1]", "stands twice"},
        Case{"modules_mixed",
             Lora("target_modules { list_value { values { string_value: 'a' } "
                  "values { bool_value: true } } }"),
             LORA "target_modules[1]", "a string"},
        Case{"modules_blank", Lora("target_modules { list_value { values { string_value: '' } } }"),
             LORA "target_modules[0]", "is empty"}),
    CaseName);

#define DATASET "job.spec.dataset."
INSTANTIATE_TEST_SUITE_P(
    Data, ValidateFieldTest,
    testing::Values(
        Case{"length_low", Data("max_length: 2"), "", ""},
        Case{"length_one", Data("max_length: 1"), DATASET "max_length", "[2, 1048576]"},
        Case{"length_above", Data("max_length: 1048577"), DATASET "max_length", "1048577"},
        Case{"truncation", Data("truncation: 'left'"), DATASET "truncation", "must be right"},
        Case{"loss_on", Data("loss_on: 'prompt'"), DATASET "loss_on", "completion, all"},
        Case{"format", Data("eval { path: '/e' format: 'csv' }"), DATASET "eval[0].format",
             "prompt_completion"},
        Case{"relative", Data("train { path: 'd.jsonl' }"), DATASET "train[1].path", "absolute"},
        Case{"no_path", Data("train {}"), DATASET "train[1].path", "is required"},
        Case{"nul", Data("train { path: '/a\\000b' }"), DATASET "train[1].path", "NUL"},
        Case{"long_path", Data("train { path: '/" + Long(4096) + "' }"), DATASET "train[1].path",
             "4097 bytes"}),
    CaseName);

INSTANTIATE_TEST_SUITE_P(
    Job, ValidateFieldTest,
    testing::Values(
        Case{"priority_high", "priority: 100", "", ""},
        Case{"priority_above", "priority: 101", "job.priority", "[0, 100]"},
        Case{"priority_negative", "priority: -1", "job.priority", "got -1"},
        Case{"title_high", "display_name: '" + Long(128) + "'", "", ""},
        Case{"title_above", "display_name: '" + Long(129) + "'", "job.display_name", "got 129"},
        Case{"label", "labels { key: 'a_b-1' value: '" + Long(63) + "' }", "", ""},
        Case{"label_key", "labels { key: 'Team' value: 'x' }", "job.labels[Team]", "[a-z]"},
        Case{"label_value", "labels { key: 'a' value: '" + Long(64) + "' }", "job.labels[a]", "64"},
        Case{"devices_zero", Resource("devices: 0"), "job.resources.devices", "got 0"},
        Case{"devices_high", Resource("devices: 1024"), "", ""},
        Case{"devices_above", Resource("devices: 1025"), "job.resources.devices", "1025"},
        Case{"device_type", Resource("device_type: 'cudaa'"), "job.resources.device_type",
             "did you mean `cuda`?"},
        Case{"retries_zero", Resource("max_retries: 0"), "", ""},
        Case{"retries_above", Resource("max_retries: 101"), "job.resources.max_retries", "101"},
        Case{"runtime_zero", Resource("max_runtime {}"), "job.resources.max_runtime", "positive"},
        Case{"runtime_negative", Resource("max_runtime { seconds: -1 }"),
             "job.resources.max_runtime", "-1 s"},
        Case{"runtime_nanos", Resource("max_runtime { seconds: 1 nanos: -5 }"),
             "job.resources.max_runtime", "-5 ns"},
        Case{"runtime", Resource("max_runtime { nanos: 1 }"), "", ""},
        Case{"task", "spec { task: 77 }", "job.spec.task", "unknown value 77"},
        Case{"dtype", "spec { base_model { dtype: 'int3' } }", "job.spec.base_model.dtype",
             "auto, float32"},
        Case{"strategy", "spec { parallelism { strategy: 'ddp' } }",
             "job.spec.parallelism.strategy", "auto, none"},
        Case{"output", "spec { output { path: 'out' } }", "job.spec.output.path", "absolute"},
        Case{"prompt", "spec { sample_prompts {} }", "job.spec.sample_prompts[0].messages",
             "required"},
        Case{"role", "spec { sample_prompts { messages { role: 'usr' content: 'x' } } }",
             "job.spec.sample_prompts[0].messages[0].role", "did you mean `user`?"},
        Case{"content", "spec { sample_prompts { messages { role: 'user' } } }",
             "job.spec.sample_prompts[0].messages[0].content", "required"},
        Case{"new_tokens",
             "spec { sample_prompts { messages { role: 'user' content: 'x' } "
             "max_new_tokens: 4097 } }",
             "job.spec.sample_prompts[0].max_new_tokens", "[1, 4096]"}),
    CaseName);

TEST(ValidateJobTest, AllWrongFieldsAreNamedAtOnce) {
  EXPECT_EQ(WrongFields(Check("priority: 200 spec { lora { r: 0 } training { learning_rate: nan "
                              "per_device_train_batch_size: 0 } }")),
            "job.priority job.spec.lora.r job.spec.training.per_device_train_batch_size "
            "job.spec.training.learning_rate");
}

TEST(ValidateJobTest, AnEmptyJobNamesWhatIsRequired) {
  v1::Job job;
  FillDefaults(&job);
  EXPECT_EQ(WrongFields(ValidateJob(job, {{"/"}, true})),
            "job.spec.base_model.path job.spec.dataset.train");
}

TEST(ValidateJobTest, ListsWithoutEndAreRefusedAsOneField) {
  v1::Job job;
  for (int i = 0; i < 10000; ++i) {
    (*job.mutable_labels())[absl::StrCat("key", i)] = "v";
    job.mutable_spec()->mutable_dataset()->add_train();
    job.mutable_spec()->add_sample_prompts();
    job.mutable_spec()
        ->mutable_lora()
        ->mutable_target_modules()
        ->mutable_list_value()
        ->add_values();
  }
  FillDefaults(&job);
  EXPECT_EQ(WrongFields(ValidateJob(job, {{"/"}, true})),
            "job.labels job.spec.base_model.path job.spec.sample_prompts job.spec.dataset.train "
            "job.spec.lora.target_modules");
}

TEST(ValidateJobTest, RequestIdsAreChecked) {
  v1::CreateJobRequest request;
  request.set_job_id("Bad_Id");
  request.set_request_id("f47ac10b-58cc-1372-a567-0e02b2c3d479");
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kSmallJob, request.mutable_job()));
  FillDefaults(request.mutable_job());
  EXPECT_EQ(WrongFields(ValidateCreateJobRequest(request, {{}, false})), "job_id request_id");
}

TEST(IsUuid4Test, TakesOnlyVersionFour) {
  EXPECT_TRUE(IsUuid4("f47ac10b-58cc-4372-a567-0e02b2c3d479"));
  EXPECT_TRUE(IsUuid4("F47AC10B-58CC-4372-B567-0E02B2C3D479"));
  for (const char* wrong :
       {"", "f47ac10b-58cc-5372-a567-0e02b2c3d479", "f47ac10b-58cc-4372-c567-0e02b2c3d479",
        "f47ac10b58cc4372a5670e02b2c3d479xxxx", "g47ac10b-58cc-4372-a567-0e02b2c3d479",
        "f47ac10b-58cc-4372-a567-0e02b2c3d479 "}) {
    EXPECT_FALSE(IsUuid4(wrong)) << wrong;
  }
}

// Checks against real files.
class ValidatePathsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/job_paths_XXXXXX";
    root_ = fs::canonical(mkdtemp(pattern.data()));
    fs::create_directories(root_ / "allowed/model");
    fs::create_directories(root_ / "secret");
    std::ofstream(root_ / "allowed/rows.jsonl") << "{}\n";
    std::ofstream(root_ / "secret/rows.jsonl") << "{}\n";
    job_.mutable_spec()->mutable_base_model()->set_path(root_ / "allowed/model");
    job_.mutable_spec()->mutable_dataset()->add_train()->set_path(root_ / "allowed/rows.jsonl");
    FillDefaults(&job_);
  }
  void TearDown() override { fs::remove_all(root_); }

  absl::Status Validate() { return ValidateJob(job_, {{root_ / "allowed"}, true}); }
  void SetModel(const fs::path& path) { job_.mutable_spec()->mutable_base_model()->set_path(path); }
  void SetRows(const fs::path& path) {
    job_.mutable_spec()->mutable_dataset()->mutable_train(0)->set_path(path);
  }

  fs::path root_;
  v1::Job job_;
};

TEST_F(ValidatePathsTest, ReadableFilesUnderARootAreRight) { EXPECT_TRUE(Validate().ok()); }

TEST_F(ValidatePathsTest, AMissingModelIsItsOwnError) {
  SetModel(root_ / "allowed/none");
  const absl::Status status = Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), Reason::kModelNotFound);
  EXPECT_EQ(MetadataOf(status, "path"), root_ / "allowed/none");
  EXPECT_EQ(MetadataOf(status, "field"), "job.spec.base_model.path");
}

TEST_F(ValidatePathsTest, AMissingDataFileIsItsOwnError) {
  SetRows(root_ / "allowed/none.jsonl");
  const absl::Status status = Validate();
  EXPECT_EQ(ReasonOf(status), Reason::kDatasetNotFound);
  EXPECT_EQ(MetadataOf(status, "field"), "job.spec.dataset.train[0].path");
}

TEST_F(ValidatePathsTest, AFolderIsNoDataFile) {
  SetRows(root_ / "allowed/model");
  const absl::Status status = Validate();
  EXPECT_EQ(ReasonOf(status), Reason::kDatasetNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a folder"));
}

TEST_F(ValidatePathsTest, ASocketOrPipeIsNoModel) {
  ASSERT_EQ(mkfifo((root_ / "allowed/pipe").c_str(), 0600), 0);
  SetModel(root_ / "allowed/pipe");
  EXPECT_EQ(ReasonOf(Validate()), Reason::kModelNotFound);
}

TEST_F(ValidatePathsTest, AnUnreadableFileIsDenied) {
  fs::permissions(root_ / "allowed/rows.jsonl", fs::perms::none);
  const absl::Status status = Validate();
  // Root reads everything.
  if (geteuid() == 0) {
    EXPECT_TRUE(status.ok()) << status;
  } else {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(ReasonOf(status), Reason::kDatasetNotFound);
  }
}

TEST_F(ValidatePathsTest, PathsOutsideTheRootsAreRefusedWhetherTheyExistOrNot) {
  fs::create_symlink(root_ / "secret", root_ / "allowed/link");
  fs::create_symlink(root_ / "allowed/circle", root_ / "allowed/circle");
  for (const fs::path& path :
       {root_ / "secret/rows.jsonl", root_ / "secret/none.jsonl", root_ / "allowed/link/rows.jsonl",
        root_ / "allowed/link/none.jsonl", root_ / "allowed/../secret/rows.jsonl",
        root_ / "allowed/none/../../secret/none", root_ / "allowed2/rows.jsonl",
        root_ / "allowed/circle"}) {
    SetRows(path);
    const absl::Status status = Validate();
    EXPECT_EQ(ReasonOf(status), Reason::kInvalidField) << path << status;
    EXPECT_EQ(WrongFields(status), "job.spec.dataset.train[0].path") << path;
  }
}

TEST_F(ValidatePathsTest, ARootMayEndInASlashOrBeALink) {
  fs::create_directory_symlink(root_ / "allowed", root_ / "alias");
  EXPECT_TRUE(ValidateJob(job_, {{root_.string() + "/allowed/"}, true}).ok());
  EXPECT_TRUE(ValidateJob(job_, {{root_ / "alias"}, true}).ok());
  EXPECT_TRUE(ValidateJob(job_, {{"/"}, true}).ok());
  EXPECT_FALSE(ValidateJob(job_, {{}, true}).ok()) << "no root allows nothing";
}

TEST_F(ValidatePathsTest, OutputNeedNotExistButMustLieUnderARoot) {
  job_.mutable_spec()->mutable_output()->set_path(root_ / "allowed/new/adapter");
  EXPECT_TRUE(Validate().ok());
  job_.mutable_spec()->mutable_output()->set_path(root_ / "elsewhere");
  EXPECT_EQ(WrongFields(Validate()), "job.spec.output.path");
}

TEST_F(ValidatePathsTest, WrongFieldsAndOutsidePathsComeTogether) {
  SetModel("/etc");
  job_.mutable_spec()->mutable_lora()->set_r(0);
  EXPECT_EQ(WrongFields(Validate()), "job.spec.lora.r job.spec.base_model.path");
}

}  // namespace
}  // namespace traind::jobspec
