#include "worker/checkpoint/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/worker/checkpoint/checkpoint_fixture.h"
#include "worker/checkpoint/checkpoint_retention.h"
#include "worker/checkpoint/folder_manifest.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(CheckpointWriterTest, WritesAFolderThatHoldsEverything) {
  TempDir dir;
  const CheckpointFixture run(dir.File("checkpoints"));
  const auto saved = run.Save(40);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_EQ(saved->path, run.Path(40));
  EXPECT_THAT(saved->removed_steps, IsEmpty());
  EXPECT_THAT(
      *ListDirectory(saved->path),
      UnorderedElementsAre("adapter_config.json", "adapter_model.safetensors", "manifest.json",
                           "optimizer.safetensors", "run_state.json", "trainer_state.json"));
  EXPECT_THAT(*ListDirectory(dir.File("checkpoints")), ElementsAre("checkpoint-40"));
  EXPECT_TRUE(run.Holds(saved->path, 40));
}

TEST(CheckpointWriterTest, ManifestListsSizesAndHashes) {
  TempDir dir;
  const CheckpointFixture run(dir.path());
  const auto saved = run.Save(40, absl::FromUnixMillis(1767225600123));
  ASSERT_TRUE(saved.ok()) << saved.status();
  const auto json = nlohmann::json::parse(*ReadFile(run.Path(40) + "/manifest.json"));
  EXPECT_EQ(json["format_version"], 1);
  EXPECT_EQ(json["step"], 40);
  EXPECT_EQ(json["run_id"], "run-1");
  EXPECT_EQ(json["create_time"], "2026-01-01T00:00:00.123Z");
  EXPECT_EQ(json["files"].size(), 5u);
  EXPECT_EQ(json["files"][4]["path"], "trainer_state.json");
  int64_t size = 0;
  for (const auto& file : json["files"]) size += file["size_bytes"].get<int64_t>();
  EXPECT_EQ(saved->size_bytes, size);
  // sha256sum of `{"step": 40}`.
  EXPECT_EQ(json["files"][3]["path"], "run_state.json");
  EXPECT_EQ(json["files"][3]["sha256"],
            "ed4c9070ebdfbe4c40038c3d2c9b20b9384edf1deae134bf63cb778565e0bc02");
}

TEST(CheckpointWriterTest, TheSameStepAgainReplacesTheOldOne) {
  TempDir dir;
  CheckpointFixture run(dir.path());
  ASSERT_TRUE(run.Save(40).ok());
  ASSERT_TRUE(WriteFileAtomically(run.Path(40) + "/run_state.json", "damaged").ok());
  ASSERT_TRUE(run.Save(40).ok());
  EXPECT_TRUE(run.Holds(run.Path(40), 40));
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("checkpoint-40"));
}

TEST(CheckpointWriterTest, KeepsTheLastBySaveStepNotByTime) {
  TempDir dir;
  const CheckpointFixture run(dir.path(), /*keep_last=*/2);
  ASSERT_TRUE(run.Save(100, absl::FromUnixSeconds(1200)).ok());
  ASSERT_TRUE(run.Save(200, absl::FromUnixSeconds(1205)).ok());
  const auto saved = run.Save(300, absl::FromUnixSeconds(1150));
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_THAT(saved->removed_steps, ElementsAre(100));
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("checkpoint-200", "checkpoint-300"));
}

TEST(CheckpointWriterTest, OtherRunsAndOtherFilesAreLeftAlone) {
  TempDir dir;
  const CheckpointFixture other(dir.path(), 0, "run-0");
  for (const int64_t step : {500, 600, 700}) ASSERT_TRUE(other.Save(step).ok());
  ASSERT_TRUE(CreateDirectories(dir.File("checkpoint-50")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File("notes.txt"), "mine").ok());
  const CheckpointFixture run(dir.path(), /*keep_last=*/1);
  ASSERT_TRUE(run.Save(100).ok());
  ASSERT_TRUE(run.Save(200).ok());
  EXPECT_THAT(*ListDirectory(dir.path()),
              UnorderedElementsAre("checkpoint-50", "checkpoint-200", "checkpoint-500",
                                   "checkpoint-600", "checkpoint-700", "notes.txt"));
}

TEST(CheckpointWriterTest, IncompleteCheckpointsDoNotCount) {
  TempDir dir;
  const CheckpointFixture run(dir.path(), /*keep_last=*/2);
  ASSERT_TRUE(run.Save(100).ok());
  ASSERT_TRUE(run.Save(200).ok());
  ASSERT_TRUE(RemoveAll(run.Path(200) + "/optimizer.safetensors").ok());
  const auto saved = run.Save(300);
  ASSERT_TRUE(saved.ok()) << saved.status();
  EXPECT_THAT(saved->removed_steps, IsEmpty());  // 100 and 300 are the last two.
}

TEST(CheckpointWriterTest, TemporariesOfOlderSavesAreRemoved) {
  TempDir dir;
  ASSERT_TRUE(CreateDirectories(dir.File(".tmp-checkpoint-7-123")).ok());
  ASSERT_TRUE(WriteFileAtomically(dir.File(".tmp-checkpoint-7-123/manifest.json"), "{}").ok());
  ASSERT_TRUE(CreateDirectories(dir.File("checkpoint-8")).ok());
  ASSERT_TRUE(RemoveTemporaries(dir.path()).ok());
  EXPECT_THAT(*ListDirectory(dir.path()), ElementsAre("checkpoint-8"));
  EXPECT_TRUE(RemoveTemporaries(dir.File("missing")).ok());
}

TEST(CheckpointWriterTest, AFolderThatCannotBeMadeIsAnError) {
  TempDir dir;
  ASSERT_TRUE(WriteFileAtomically(dir.File("file"), "x").ok());
  const CheckpointFixture run(dir.File("file"));
  const auto saved = run.Save(1);
  EXPECT_FALSE(saved.ok());
  EXPECT_THAT(saved.status().message(), HasSubstr("/file"));
}

#ifdef TRAIND_FAULT_POINTS

// Dies or runs out of disk at a fault point of the second save, in a process of its own, as the
// fault is read once a process.
struct Fault {
  std::string name;
  int pass = 2;  // The pass that is in the second save.
};

class CheckpointFaultTest : public testing::TestWithParam<Fault> {
 protected:
  CheckpointFaultTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  // The same in the test and in its child.
  static std::string Directory(const std::string& kind) {
    return absl::StrCat(testing::TempDir(), "traind-fault-", kind, "-", GetParam().name, "-",
                        GetParam().pass);
  }

  // Saves 10 and 20; ends the process with the second save's message.
  [[noreturn]] static void SaveTwice(const std::string& directory, const std::string& effect) {
    ::setenv("TRAIND_FAULT",
             absl::StrCat(GetParam().name, ":", effect, "@", GetParam().pass).c_str(), 1);
    const CheckpointFixture run(directory, /*keep_last=*/1);
    if (!RemoveAll(directory).ok() || !run.Save(10).ok()) std::exit(1);
    const auto saved = run.Save(20);
    std::fprintf(stderr, "%s", saved.status().ToString().c_str());
    std::exit(ReasonOf(saved.status()) == Reason::kDiskFull ? 2 : 3);
  }

  static bool renamed() { return GetParam().name == "checkpoint.after_rename"; }
};

TEST_P(CheckpointFaultTest, KilledThereResumesFromACompleteOne) {
  const std::string directory = Directory("exit");
  EXPECT_EXIT(SaveTwice(directory, "exit"), testing::ExitedWithCode(137), "");
  const CheckpointFixture run(directory, /*keep_last=*/1);
  ASSERT_TRUE(RemoveTemporaries(directory).ok());
  const auto found = run.Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->skipped, IsEmpty());
  ASSERT_TRUE(found->newest.has_value());
  const int64_t step = renamed() ? 20 : 10;
  EXPECT_EQ(found->newest->step, step);
  EXPECT_TRUE(run.Holds(found->newest->path, step));
  // The next save works and clears up what the crash kept from being removed.
  ASSERT_TRUE(run.Save(30).ok());
  EXPECT_THAT(*ListDirectory(directory), ElementsAre("checkpoint-30"));
  EXPECT_TRUE(RemoveAll(directory).ok());
}

TEST_P(CheckpointFaultTest, DiskFullThereKeepsTheOlderOne) {
  const std::string directory = Directory("enospc");
  EXPECT_EXIT(SaveTwice(directory, "enospc"), testing::ExitedWithCode(2), "No space left");
  const CheckpointFixture run(directory);
  const auto found = run.Find();
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->skipped, IsEmpty());
  ASSERT_TRUE(found->newest.has_value());
  EXPECT_TRUE(run.Holds(run.Path(10), 10));
  EXPECT_EQ(found->newest->step, renamed() ? 20 : 10);
  EXPECT_THAT(*ListDirectory(directory), testing::Each(testing::StartsWith("checkpoint-")));
  EXPECT_TRUE(RemoveAll(directory).ok());
}

// A save writes 8 matrices and their 16 moments.
INSTANTIATE_TEST_SUITE_P(
    All, CheckpointFaultTest,
    testing::Values(Fault{"safetensors.after_tensor", 24 + 1},
                    Fault{"safetensors.after_tensor", 24 + 10}, Fault{"checkpoint.after_weights"},
                    Fault{"checkpoint.after_optimizer"}, Fault{"checkpoint.before_manifest"},
                    Fault{"checkpoint.before_rename"}, Fault{"checkpoint.after_rename"}),
    [](const auto& point) {
      return absl::StrCat(absl::StrReplaceAll(point.param.name, {{".", "_"}}), "_", point.index);
    });

#endif

}  // namespace
}  // namespace traind
