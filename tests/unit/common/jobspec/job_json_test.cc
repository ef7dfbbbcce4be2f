#include "common/jobspec/job_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/jobspec/known_fields.h"
#include "common/jobspec/nearest_name.h"
#include "common/status/errors.h"

namespace traind::jobspec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr absl::string_view kSmallest = R"({
  "base_model": {"path": "models/m.gguf"},
  "dataset": {"train": [{"path": "data/train.jsonl"}]}
})";

absl::StatusOr<JobFile> Parse(absl::string_view text) { return ParseJob(text, "job.json", "/w"); }

// Every problem as `path: description`.
std::vector<std::string> Problems(absl::string_view text) {
  const auto file = Parse(text);
  std::vector<std::string> lines;
  for (const FieldViolation& problem : FieldViolationsOf(file.status())) {
    lines.push_back(absl::StrCat(problem.field, ": ", problem.description));
  }
  return lines;
}

TEST(JobJsonTest, ExpandsTheShortForm) {
  const auto file = Parse(kSmallest);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->job.spec().base_model().path(), "/w/models/m.gguf");
  EXPECT_EQ(file->job.spec().dataset().train(0).path(), "/w/data/train.jsonl");
}

TEST(JobJsonTest, ReadsEveryKindOfField) {
  const auto file = Parse(R"({
    "display_name": "määritä", "priority": 50, "labels": {"team": "nlp"},
    "resources": {"devices": 1, "max_runtime": "2h30m0.5s"},
    "spec": {"base_model": {"path": "/abs/m"}, "task": "CAUSAL_LM",
             "dataset": {"train": [{"path": "../t.jsonl"}, {"path": "./u.jsonl"}]},
             "lora": {"r": 16, "lora_alpha": 32, "target_modules": ["q_proj", "v_proj"],
                      "use_rslora": true},
             "training": {"learning_rate": 1e-3, "max_steps": 9007199254740993,
                          "weight_decay": "0.1", "num_train_epochs": 3, "logging_steps": 10.0},
             "sample_prompts": [{"messages": [{"role": "user", "content": "Hi \"you\""}]}]}})");
  ASSERT_TRUE(file.ok()) << file.status();
  const v1::Job& job = file->job;
  EXPECT_EQ(job.display_name(), "määritä");
  EXPECT_EQ(job.labels().at("team"), "nlp");
  EXPECT_EQ(job.resources().max_runtime().seconds(), 9000);
  EXPECT_EQ(job.resources().max_runtime().nanos(), 500000000);
  EXPECT_EQ(job.spec().base_model().path(), "/abs/m");
  EXPECT_EQ(job.spec().task(), v1::CAUSAL_LM);
  EXPECT_EQ(job.spec().dataset().train(0).path(), "/t.jsonl");
  EXPECT_EQ(job.spec().dataset().train(1).path(), "/w/u.jsonl");
  EXPECT_EQ(job.spec().lora().target_modules().list_value().values(1).string_value(), "v_proj");
  EXPECT_EQ(job.spec().training().learning_rate(), 1e-3);
  EXPECT_EQ(job.spec().training().max_steps(), 9007199254740993);
  EXPECT_EQ(job.spec().training().weight_decay(), 0.1);
  EXPECT_EQ(job.spec().training().logging_steps(), 10);
  EXPECT_EQ(job.spec().sample_prompts(0).messages(0).content(), "Hi \"you\"");
}

TEST(JobJsonTest, UnsetFieldsStayUnset) {
  const auto file = Parse(R"({"lora": {"r": null, "target_modules": null}, "training": {}})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->job.spec().lora().has_r());
  EXPECT_FALSE(file->job.spec().lora().has_target_modules());
  EXPECT_FALSE(file->job.spec().has_dataset());
}

struct SyntaxCase {
  const char* text;
  const char* message;
};

class JobJsonSyntaxTest : public ::testing::TestWithParam<SyntaxCase> {};

TEST_P(JobJsonSyntaxTest, NamesThePlaceAndTheCause) {
  const absl::Status status = Parse(GetParam().text).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, JobJsonSyntaxTest,
    ::testing::Values(
        SyntaxCase{"", "job.json:1:1: not valid JSON"},
        SyntaxCase{"{\n  \"training\": {\"learning_rate\": NaN}}",
                   "job.json:2:33: not valid JSON: invalid literal"},
        SyntaxCase{"{\"training\": {\"learning_rate\": NaN}}", "JSON has no NaN or Infinity"},
        SyntaxCase{"{\"training\": {\"num_train_epochs\": 1e999}}", "number overflow"},
        SyntaxCase{"{\n\"priority\": 1,\n}", "job.json:3:1: not valid JSON"},
        SyntaxCase{"{\n\"priority\": 1,\n}", "remove the comma before it"},
        SyntaxCase{"{ // mine\n}", "JSON has no comments"},
        SyntaxCase{"{'priority': 1}", "strings stand in double quotes"},
        SyntaxCase{"{\"a\": True}", "JSON writes true, false and null"},
        SyntaxCase{"{\"display_name\": \"\xff\"}", "ill-formed UTF-8 byte; last read: '\"\\xff'"},
        SyntaxCase{"{\"display_name\": \"\\ud800\"}", "surrogate"},
        SyntaxCase{"{\"training\": {\"seed\": 1, \"seed\": 2}}",
                   "job.json: training.seed is given twice"},
        SyntaxCase{"{\"dataset\": {\"train\": [{}, {\"path\": \"a\", \"path\": \"b\"}]}}",
                   "dataset.train[1].path is given twice"},
        SyntaxCase{"[1, 2]", "job.json: a job is a JSON object; got [1,2]"}));

TEST(JobJsonTest, DeepNestingIsRefused) {
  EXPECT_THAT(std::string(Parse(std::string(100000, '[')).status().message()),
              HasSubstr("nested deeper than 64"));
}

TEST(JobJsonTest, ReportsEveryWrongTypeAtOnceWithItsPath) {
  EXPECT_THAT(
      Problems(R"({
        "priority": 3000000000, "labels": {"a": 1}, "resources": {"max_runtime": "soon"},
        "base_model": "models/m.gguf", "task": "SEQ_CLS",
        "dataset": {"train": {"path": "x"}, "max_length": 12.5},
        "lora": {"use_rslora": "yes"},
        "training": {"learning_rate": "fast", "weight_decay": "NaN", "seed": 1e300},
        "output": {"path": "a\u0000b"}})"),
      ElementsAre("priority: must be between -2147483648 and 2147483647; got 3000000000",
                  "labels.a: must be a string; got 1",
                  "resources.max_runtime: must be a duration such as \"7200s\" or \"2h30m\"; got "
                  "\"soon\"",
                  "base_model: must be an object such as {\"path\": \"…\"}; got \"models/m.gguf\"",
                  "task: must be one of CAUSAL_LM; got \"SEQ_CLS\"",
                  "dataset.train: must be a list; got {\"path\":\"x\"}",
                  "dataset.max_length: must be a whole number; got 12.5",
                  "lora.use_rslora: must be true or false; got \"yes\"",
                  "training.learning_rate: must be a number; got \"fast\"",
                  "training.weight_decay: must be a number; got \"NaN\"",
                  "training.seed: must be a whole number; got 1e+300",
                  "output.path: must not contain a NUL character"));
}

TEST(JobJsonTest, AnUnknownFieldNamesTheNearestOne) {
  EXPECT_THAT(Problems(R"({
        "pritority": 1,
        "dataset": {"train": [{"paht": "x"}]},
        "lora": {"alpha": 1, "lora_aplha": 2, "learning_rate": 1, "zzzzzz": 1},
        "training": {"learningRate": 1, "lr": 1e-4, "per_device_train_batchsize": 4}})"),
              ElementsAre("pritority: is not a known field; did you mean `priority`?",
                          "dataset.train[0].paht: is not a known field; did you mean `path`?",
                          "lora.alpha: is not a known field; did you mean `lora_alpha`?",
                          "lora.lora_aplha: is not a known field; did you mean `lora_alpha`?",
                          "lora.learning_rate: is not a field of this object; did you mean "
                          "`training.learning_rate`?",
                          HasSubstr("lora.zzzzzz: is not a known field; known here: r, lora_alpha"),
                          "training.learningRate: is not a known field; did you mean "
                          "`learning_rate`?",
                          "training.lr: is not a known field; did you mean `learning_rate`?",
                          "training.per_device_train_batchsize: is not a known field; did you mean "
                          "`per_device_train_batch_size`?"));
}

TEST(JobJsonTest, AKnownButUnsupportedFieldIsRefusedWithTheReason) {
  EXPECT_THAT(Problems(R"({
        "token": "hf_x", "queue": "fast",
        "lora": {"use_dora": true, "modules_to_save": ["lm_head"]},
        "training": {"fp16": true, "neftune_noise_alpha": 5, "deepspeed": {"stage": 3},
                     "report_to": ["tensorboard"], "gradient_checkpointing": true}})"),
              ElementsAre(HasSubstr("token: cannot be \"hf_x\": secrets are never part of a job"),
                          HasSubstr("queue: cannot be \"fast\": there is one queue"),
                          "lora.use_dora: cannot be true: DoRA is not supported yet",
                          HasSubstr("lora.modules_to_save: cannot be [\"lm_head\"]"),
                          HasSubstr("training.fp16: cannot be true: numbers of this kind"),
                          HasSubstr("training.neftune_noise_alpha: cannot be 5: NEFTune"),
                          HasSubstr("training.deepspeed: cannot be {\"stage\":3}"),
                          HasSubstr("training.report_to: cannot be [\"tensorboard\"]"),
                          HasSubstr("training.gradient_checkpointing: cannot be true")));
}

TEST(JobJsonTest, HarmlessValuesOfUnsupportedFieldsAreSkipped) {
  const auto file = Parse(R"({
        "queue": "default", "resources": {"nodes": 1, "preemptible": false},
        "base_model": {"path": "m", "quantization": {"kind": "none"}},
        "dataset": {"train": [{"path": "t", "weight": 1.0}], "packing": "none",
                    "dataloader_num_workers": 4},
        "lora": {"use_dora": false, "modules_to_save": null, "peft_type": "LORA",
                 "rank_pattern": {}},
        "training": {"fp16": false, "load_best_model_at_end": false, "packing": false,
                     "neftune_noise_alpha": null, "gradient_checkpointing": "auto",
                     "report_to": "none", "fsdp": [], "push_to_hub": false},
        "parallelism": {"comm_hook": "none"}, "output": {"merge": false, "gguf": false}})");
  EXPECT_TRUE(file.ok()) << file.status();
}

TEST(JobJsonTest, UnderstandsTheSpellingsOfOtherVersions) {
  const auto file = Parse(R"({
        "base_model": {"torch_dtype": "float32"},
        "training": {"evaluation_strategy": "steps", "max_seq_length": 512, "warmup_steps": 0.03,
                     "bf16": false, "completion_only_loss": false}})");
  ASSERT_TRUE(file.ok()) << file.status();
  const v1::TrainingSpec& spec = file->job.spec();
  EXPECT_EQ(spec.base_model().dtype(), "float32");
  EXPECT_EQ(spec.training().eval_strategy(), "steps");
  EXPECT_EQ(spec.dataset().max_length(), 512);
  EXPECT_EQ(spec.training().warmup_ratio(), 0.03);
  EXPECT_FALSE(spec.training().has_warmup_steps());
  EXPECT_EQ(spec.training().bf16(), "false");
  EXPECT_EQ(spec.dataset().loss_on(), "all");
}

TEST(JobJsonTest, WholeWarmupStepsStaySteps) {
  const auto file = Parse(R"({"training": {"warmup_steps": 3, "bf16": "auto"}})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->job.spec().training().warmup_steps(), 3);
  EXPECT_EQ(file->job.spec().training().bf16(), "auto");
}

TEST(JobJsonTest, TwoSpellingsOfOneFieldAreRefused) {
  EXPECT_THAT(Problems(R"({"dataset": {"max_length": 1},
                           "training": {"max_seq_length": 2}})"),
              ElementsAre("training.max_seq_length: says the same as `dataset.max_length`; keep "
                          "one of them"));
}

TEST(JobJsonTest, SpecAndShortFormDoNotMix) {
  EXPECT_THAT(Problems(R"({"spec": {}, "lora": {"r": 1}})"),
              ElementsAre("lora: stands beside `spec`; move it into `spec`"));
}

TEST(JobJsonTest, OutputFieldsOfAPrintedJobAreSkipped) {
  const auto file = Parse(R"({"name": "jobs/a", "uid": "u", "state": "SUCCEEDED",
                              "error": {"code": 3}, "create_time": "2026-01-01T00:00:00Z",
                              "spec": {"base_model": {"path": "m"}}})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->job.name(), "jobs/a");
  EXPECT_EQ(file->job.uid(), "");
  EXPECT_EQ(file->job.state(), v1::Job::STATE_UNSPECIFIED);
}

TEST(JobJsonTest, PathsOfTheDaemonBecomePathsOfTheFile) {
  const auto file = Parse(R"({"base_model": {"path": "m", "torch_dtype": "int3"},
                              "dataset": {"train": [{"path": "t"}]},
                              "training": {"max_seq_length": 1}})");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(PathInFile(*file, "job.spec.base_model.dtype"), "base_model.torch_dtype");
  EXPECT_EQ(PathInFile(*file, "job.spec.dataset.max_length"), "training.max_seq_length");
  EXPECT_EQ(PathInFile(*file, "job.spec.dataset.train[0].path"), "dataset.train[0].path");
  EXPECT_EQ(PathInFile(*file, "job.spec.lora.r"), "lora.r");
  EXPECT_EQ(PathInFile(*file, "job.priority"), "priority");
  EXPECT_EQ(PathInFile(*file, "page_size"), "page_size");
  const auto full = Parse(R"({"spec": {"base_model": {"path": "m"}}})");
  EXPECT_EQ(PathInFile(*full, "job.spec.lora.r"), "spec.lora.r");
}

TEST(JobJsonTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReadJobFile("/no/such/job.json").status().code(), absl::StatusCode::kNotFound);
}

TEST(JobJsonTest, PathsCountFromTheFolderOfTheFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/paths_", getpid(), ".json");
  std::ofstream(path) << kSmallest;
  const auto file = ReadJobFile(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->job.spec().base_model().path(),
              ::testing::MatchesRegex("/.*[^/]/models/m.gguf"));
  unlink(path.c_str());
}

TEST(JobJsonTest, EveryExampleIsAJob) {
  for (const char* name : {"define-words", "chat-messages", "continued-text", "checkpoint-heavy"}) {
    const std::string path = absl::StrCat(TRAIND_SOURCE_DIR "/deploy/examples/", name, ".json");
    const auto file = ReadJobFile(path);
    ASSERT_TRUE(file.ok()) << path << ": " << file.status();
    EXPECT_EQ(file->job.display_name(), name);
    EXPECT_GE(file->job.spec().dataset().train_size(), 1);
  }
}

TEST(KnownFieldsTest, NoUnsupportedFieldShadowsARealOne) {
  for (const auto* type :
       {v1::LoraConfig::descriptor(), v1::TrainingArguments::descriptor(),
        v1::BaseModel::descriptor(), v1::Dataset::descriptor(), v1::Job::descriptor()}) {
    for (int i = 0; i < type->field_count(); ++i) {
      EXPECT_EQ(FindUnsupported(type->name(), type->field(i)->name()), nullptr)
          << type->field(i)->full_name();
    }
  }
}

TEST(NearestNameTest, CountsSwapsAsOne) {
  EXPECT_EQ(EditDistance("paht", "path"), 1);
  EXPECT_EQ(EditDistance("", "abc"), 3);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3);
  EXPECT_EQ(NearestName("x", {"r"}), "");
}

TEST(JobJsonTest, TheSpecsOfCommonMistakesAreRefused) {
  EXPECT_THAT(std::string(Parse(R"({"training": {"epochs": 1, "epochs": 2}})").status().message()),
              HasSubstr("training.epochs is given twice"));
  EXPECT_THAT(Problems(R"({"training": {"epochs": 3}})"),
              ElementsAre("training.epochs: is not a known field; did you mean "
                          "`num_train_epochs`?"));
}

}  // namespace
}  // namespace traind::jobspec
