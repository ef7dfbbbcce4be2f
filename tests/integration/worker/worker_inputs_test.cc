// Wrong inputs: the run ends at once, with a reason and a place.
#include <gmock/gmock.h>

#include <tuple>

#include "common/status/errors.h"
#include "tests/integration/worker/worker_harness.h"

namespace traind {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class WorkerInputsTest : public WorkerHarness {
 protected:
  // Runs, expects FAILED with `reason`, and returns the message.
  std::string ExpectFailure(Reason reason) {
    ExpectExit(RunAttempt(), WorkerExit::kFailed);
    const std::vector<worker::v1::Report> reports = daemon_->reports();
    EXPECT_EQ(FinishedOf(reports).result(), worker::v1::Finished::FAILED);
    const absl::Status error = ErrorOf(reports);
    EXPECT_EQ(ReasonOf(error), reason) << error;
    EXPECT_THAT(StepsOf(reports), IsEmpty());
    return std::string(error.message());
  }
};

TEST_F(WorkerInputsTest, AMissingModelFolder) {
  spec_.mutable_base_model()->set_path("/no/such/model");
  EXPECT_THAT(ExpectFailure(Reason::kModelNotFound), HasSubstr("/no/such/model"));
}

TEST_F(WorkerInputsTest, AConfigWithoutWeights) {
  ASSERT_TRUE(RemoveAll(dir_.File("model/model.safetensors")).ok());
  ExpectExit(RunAttempt(), WorkerExit::kFailed);
  const absl::Status error = ErrorOf(daemon_->reports());
  EXPECT_TRUE(ReasonOf(error) == Reason::kModelInvalid || ReasonOf(error) == Reason::kModelNotFound)
      << error;
}

TEST_F(WorkerInputsTest, AMissingDataFile) {
  spec_.mutable_dataset()->mutable_train(0)->set_path("/no/rows.jsonl");
  EXPECT_THAT(ExpectFailure(Reason::kDatasetNotFound), HasSubstr("/no/rows.jsonl"));
}

TEST_F(WorkerInputsTest, ALineThatIsNotJson) {
  const std::string row = R"({"prompt": "a", "completion": "b"})";
  std::string rows;
  for (int i = 0; i < 6; ++i) rows += row + "\n";
  WriteText("rows.jsonl", rows + "not json\n");
  const std::string message = ExpectFailure(Reason::kDatasetInvalid);
  EXPECT_THAT(message, HasSubstr("rows.jsonl"));
  EXPECT_THAT(message, HasSubstr("7"));
}

TEST_F(WorkerInputsTest, AllRowsWithoutASupervisedToken) {
  spec_.mutable_dataset()->set_max_length(3);
  ExpectFailure(Reason::kNoSupervisedTokens);
}

TEST_F(WorkerInputsTest, TargetModulesThatMatchNothing) {
  auto* names = spec_.mutable_lora()->mutable_target_modules()->mutable_list_value();
  names->add_values()->set_string_value("query_key_value");
  const std::string message = ExpectFailure(Reason::kTargetModulesNotFound);
  EXPECT_THAT(message, HasSubstr("query_key_value"));
  EXPECT_THAT(message, HasSubstr("q_proj"));
}

TEST_F(WorkerInputsTest, ASpecThatTheDaemonShouldHaveRefused) {
  spec_.mutable_lora()->set_r(0);
  EXPECT_THAT(ExpectFailure(Reason::kInvalidField), HasSubstr("lora.r"));
}

TEST_F(WorkerInputsTest, ASamplePromptWithoutAChatTemplate) {
  WriteText("model/tokenizer_config.json", R"({"eos_token": "<eos>"})");
  auto* message = spec_.add_sample_prompts()->add_messages();
  message->set_role("user");
  message->set_content("hi");
  EXPECT_THAT(ExpectFailure(Reason::kTextInvalid), HasSubstr("sample_prompts[0]"));
}

TEST_F(WorkerInputsTest, AnOutputFolderThatCannotBeMade) {
  WriteText("file", "");
  spec_.mutable_output()->set_path(dir_.File("file/adapter"));
  EXPECT_THAT(ExpectFailure(Reason::kOutputFailed), HasSubstr("file/adapter"));
}

class WorkerCommandTest : public testing::Test {
 protected:
  // Exit code and output of the worker with `arguments`.
  std::pair<int, std::string> Run(const std::vector<std::string>& arguments) {
    SubprocessOptions options;
    options.argv = {TRAIND_BIN_DIR "/traind-worker"};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.output_path = dir_.File("output");
    auto started = Subprocess::Start(options);
    EXPECT_TRUE(started.ok()) << started.status();
    if (!started.ok()) return {-1, ""};
    const auto exit = started->Wait(absl::Seconds(60));
    return {exit.value_or(ExitState()).value, ReadFile(dir_.File("output")).value_or("")};
  }

  TempDir dir_;
};

TEST_F(WorkerCommandTest, CheckPrintsWhatTheMachineOffers) {
  const auto [code, output] = Run({"--check"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(output, HasSubstr("cpu_features: avx2"));
  EXPECT_THAT(output, HasSubstr("libtorch: 2.11"));
  EXPECT_THAT(output, HasSubstr("threads: "));
}

TEST_F(WorkerCommandTest, AnAssignmentThatIsMissingOrWrongIsRefused) {
  EXPECT_EQ(Run({}).first, 2);
  auto [code, output] = Run({"--assignment", dir_.File("none.json")});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr("none.json"));
  ASSERT_TRUE(WriteFileAtomically(dir_.File("a.json"), R"({"job_uid": "u"})").ok());
  std::tie(code, output) = Run({"--assignment", dir_.File("a.json")});
  EXPECT_EQ(code, 2);
  EXPECT_THAT(output, HasSubstr("job_name"));
}

}  // namespace
}  // namespace traind
