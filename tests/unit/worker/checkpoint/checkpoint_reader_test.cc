#include "worker/checkpoint/checkpoint_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/worker/checkpoint/checkpoint_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CheckpointReaderTest : public testing::Test {
 protected:
  // The step that a resume would take, and the reasons for passing over newer ones.
  CheckpointSearch Find() {
    const auto found = run_.Find();
    EXPECT_TRUE(found.ok()) << found.status();
    return *found;
  }
  absl::Status ReadError(int64_t step) {
    const auto count = static_cast<size_t>(run_.layout().size);
    std::vector<float> a(count), b(count), c(count);
    return ReadCheckpoint(run_.Path(step),
                          {run_.layout(), absl::MakeSpan(a), absl::MakeSpan(b), absl::MakeSpan(c)})
        .status();
  }

  TempDir dir_;
  CheckpointFixture run_{dir_.path()};
};

TEST_F(CheckpointReaderTest, NothingThereIsNoError) {
  EXPECT_FALSE(Find().newest.has_value());
  const auto found = FindNewestValidCheckpoint(dir_.File("missing"), "run-1");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->newest.has_value());
}

TEST_F(CheckpointReaderTest, TakesTheGreatestStep) {
  for (const int64_t step : {900, 1000, 200}) ASSERT_TRUE(run_.Save(step).ok());
  const CheckpointSearch found = Find();
  ASSERT_TRUE(found.newest.has_value());
  EXPECT_EQ(found.newest->step, 1000);
  EXPECT_EQ(found.newest->path, run_.Path(1000));
  EXPECT_THAT(found.skipped, IsEmpty());
}

// Each file of the newest checkpoint in turn is cut to nothing, cut, changed and removed.
TEST_F(CheckpointReaderTest, AnyDamageIsFoundAndNamed) {
  ASSERT_TRUE(run_.Save(10).ok());
  const std::vector<std::string> files = {"adapter_config.json", "adapter_model.safetensors",
                                          "optimizer.safetensors", "run_state.json",
                                          "trainer_state.json"};
  for (const std::string& name : files) {
    ASSERT_TRUE(run_.Save(20).ok());
    const std::string path = run_.Path(20) + "/" + name;
    const std::string good = *ReadFile(path);
    std::string flipped = good;
    flipped[good.size() / 2] = static_cast<char>(flipped[good.size() / 2] ^ 1);
    for (const std::string& bad : {std::string(), good.substr(0, good.size() - 1), flipped}) {
      ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
      const CheckpointSearch found = Find();
      ASSERT_TRUE(found.newest.has_value());
      EXPECT_EQ(found.newest->step, 10);
      EXPECT_THAT(found.skipped, ElementsAre(HasSubstr(run_.Path(20) + ": " + name)));
    }
    ASSERT_TRUE(RemoveAll(path).ok());
    EXPECT_THAT(Find().skipped, ElementsAre(run_.Path(20) + ": " + name + " is missing"));
  }
}

TEST_F(CheckpointReaderTest, WithoutAWholeManifestItIsNotValid) {
  ASSERT_TRUE(run_.Save(10).ok());
  const std::string path = run_.Path(10) + "/manifest.json";
  const std::string good = *ReadFile(path);
  for (const std::string& bad : {std::string(), std::string("{}"), good.substr(0, 40)}) {
    ASSERT_TRUE(WriteFileAtomically(path, bad).ok());
    EXPECT_THAT(
        Find().skipped,
        ElementsAre(run_.Path(10) + ": its manifest.json is damaged or of another format_version"));
  }
  ASSERT_TRUE(RemoveAll(path).ok());
  EXPECT_THAT(Find().skipped, ElementsAre(run_.Path(10) + ": it has no manifest.json"));
}

TEST_F(CheckpointReaderTest, CheckpointsOfOtherRunsAreSkipped) {
  ASSERT_TRUE(CheckpointFixture(dir_.path(), 0, "run-0").Save(700).ok());
  ASSERT_TRUE(run_.Save(100).ok());
  const CheckpointSearch found = Find();
  ASSERT_TRUE(found.newest.has_value());
  EXPECT_EQ(found.newest->step, 100);
  EXPECT_THAT(found.skipped, ElementsAre(run_.Path(700) + ": it belongs to the run run-0"));
}

TEST_F(CheckpointReaderTest, OtherSettingsOfTheAdapterAreRefused) {
  ASSERT_TRUE(run_.Save(10).ok());
  run_.layout().options.lora_alpha = 32;
  const absl::Status status = ReadError(10);
  EXPECT_EQ(ReasonOf(status), Reason::kCheckpointCorrupt);
  EXPECT_EQ(status.message(), run_.Path(10) +
                                  ": it was trained with lora_alpha 4, this run has 32.0; resume "
                                  "with the same settings or start anew");
}

TEST_F(CheckpointReaderTest, OtherModulesAreRefusedByName) {
  ASSERT_TRUE(run_.Save(10).ok());
  run_.layout() = TinyAdapterLayout({"q_proj", "o_proj"});
  const absl::Status status = ReadError(10);
  EXPECT_EQ(ReasonOf(status), Reason::kCheckpointCorrupt);
  EXPECT_THAT(status.message(),
              HasSubstr("4 tensors belong to no module of the adapter (base_model.model.model."
                        "layers.0.self_attn.v_proj.lora_A.weight"));
  EXPECT_THAT(status.message(), HasSubstr("o_proj.lora_A.weight"));
}

// Moments are stored by name, so another order of the flat buffer reads the same numbers.
TEST_F(CheckpointReaderTest, TheOrderOfTheBufferMayChange) {
  ASSERT_TRUE(run_.Save(10).ok());
  const AdapterLayout old = run_.layout();
  AdapterLayout changed = old;
  const int64_t half = old.size / 2;
  for (LoraModule& module : changed.modules) {
    module.a_offset = (module.a_offset + half) % old.size;
    module.b_offset = (module.b_offset + half) % old.size;
  }
  const auto count = static_cast<size_t>(old.size);
  std::vector<float> parameters(count), exp_avg(count), exp_avg_sq(count);
  const auto state = ReadCheckpoint(
      run_.Path(10),
      {changed, absl::MakeSpan(parameters), absl::MakeSpan(exp_avg), absl::MakeSpan(exp_avg_sq)});
  ASSERT_TRUE(state.ok()) << state.status();
  const std::vector<float> written = Waves(old.size, 10.5);
  for (size_t i = 0; i < old.modules.size(); ++i) {
    EXPECT_EQ(exp_avg_sq[static_cast<size_t>(changed.modules[i].b_offset)],
              written[static_cast<size_t>(old.modules[i].b_offset)]);
  }
}

}  // namespace
}  // namespace traind
