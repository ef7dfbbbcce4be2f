#include "server/artifacts/checkpoint_catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "server/artifacts/checkpoint_file_reader.h"
#include "server/artifacts/job_paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_checkpoints.h"

namespace traind::artifacts {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CheckpointCatalogTest : public testing::Test {
 protected:
  CheckpointCatalogTest() {
    job_.set_name("jobs/a");
    job_.set_uid("uid-a");
  }

  void Save(int64_t step) {
    WriteCheckpoint(paths_.checkpoint_dir(step), step, {{"x.bin", "xx"}, {"y.bin", "yyy"}});
  }

  std::vector<std::string> Names() {
    const auto checkpoints = catalog_.List(job_);
    EXPECT_TRUE(checkpoints.ok()) << checkpoints.status();
    std::vector<std::string> names;
    for (const v1::Checkpoint& checkpoint : *checkpoints) names.push_back(checkpoint.name());
    return names;
  }

  TempDir state_;
  JobPaths paths_ = *JobPaths::ForJob(state_.path(), "uid-a");
  CheckpointCatalog catalog_{state_.path()};
  v1::Job job_;
};

TEST_F(CheckpointCatalogTest, AJobWithoutFilesHasNone) { EXPECT_THAT(Names(), IsEmpty()); }

TEST_F(CheckpointCatalogTest, ListsByNumberThenTheAdapter) {
  for (const int64_t step : {100, 20, 3}) Save(step);
  WriteCheckpoint(paths_.adapter_dir(), 100, {{"adapter_config.json", "{}"}});
  EXPECT_THAT(Names(), ElementsAre("jobs/a/checkpoints/3", "jobs/a/checkpoints/20",
                                   "jobs/a/checkpoints/100", "jobs/a/checkpoints/adapter"));
}

TEST_F(CheckpointCatalogTest, TellsWhatIsInIt) {
  Save(20);
  const auto checkpoint = catalog_.Get(job_, "20");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->name(), "jobs/a/checkpoints/20");
  EXPECT_EQ(checkpoint->step(), 20);
  EXPECT_EQ(checkpoint->path(), paths_.checkpoint_dir(20));
  EXPECT_EQ(checkpoint->create_time().seconds(), 1769860800);
  ASSERT_EQ(checkpoint->files_size(), 3);
  EXPECT_EQ(checkpoint->files(0).path(), "x.bin");
  EXPECT_EQ(checkpoint->files(2).path(), "manifest.json");
  int64_t size = 0;
  for (const v1::CheckpointFile& file : checkpoint->files()) size += file.size_bytes();
  EXPECT_EQ(checkpoint->size_bytes(), size);
  EXPECT_GT(size, 5);
}

// As the worker's writer lays it out: indented, milliseconds, with its run's id.
TEST_F(CheckpointCatalogTest, ReadsAManifestWithMoreThanItNeeds) {
  const std::string manifest = absl::StrCat(
      "{\n  \"create_time\": \"2026-01-31T12:00:00.250Z\",\n  \"files\": [\n    ",
      ManifestEntry("x.bin", "xx"),
      "\n  ],\n  \"format_version\": 1,\n  \"run_id\": \"uid-a\",\n  \"step\": 20\n}\n");
  WriteFiles(paths_.checkpoint_dir(20), {{"x.bin", "xx"}, {"manifest.json", manifest}});
  const auto checkpoint = catalog_.Get(job_, "20");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->create_time().nanos(), 250'000'000);
  EXPECT_EQ(checkpoint->files(1).sha256(), Sha256Hex(manifest));
}

// What is downloaded is a valid checkpoint again.
TEST_F(CheckpointCatalogTest, EveryListedFileCanBeReadAndCopied) {
  Save(20);
  const auto checkpoint = catalog_.Get(job_, "20");
  std::map<std::string, std::string> copy;
  for (const v1::CheckpointFile& file : checkpoint->files()) {
    auto reader = CheckpointFileReader::Open(*checkpoint, file);
    ASSERT_TRUE(reader.ok()) << reader.status();
    copy[file.path()] = *(*reader)->Read(1 << 20);
    EXPECT_EQ(*(*reader)->Read(1), "");
  }
  const JobPaths other = *JobPaths::ForJob(state_.path(), "uid-b");
  WriteFiles(other.checkpoint_dir(20), copy);
  job_.set_uid("uid-b");
  EXPECT_THAT(Names(), ElementsAre("jobs/a/checkpoints/20"));
}

TEST_F(CheckpointCatalogTest, WhatIsNotWholeIsNotListed) {
  Save(1);
  Save(2);
  ASSERT_TRUE(RemoveAll(paths_.checkpoint_dir(2) + "/x.bin").ok());
  Save(3);
  ASSERT_TRUE(WriteFileAtomically(paths_.checkpoint_dir(3) + "/x.bin", "longer").ok());
  Save(4);
  ASSERT_TRUE(RemoveAll(paths_.checkpoint_dir(4) + "/manifest.json").ok());
  WriteCheckpoint(paths_.checkpoint_dir(5), 6, {{"x.bin", "xx"}});
  Save(7);
  ASSERT_TRUE(WriteFileAtomically(paths_.checkpoint_dir(7) + "/manifest.json", "{").ok());
  EXPECT_THAT(Names(), ElementsAre("jobs/a/checkpoints/1"));
  for (const std::string id : {"2", "3", "4", "5", "7"}) {
    const absl::Status status = catalog_.Get(job_, id).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << id;
    EXPECT_EQ(ReasonOf(status), Reason::kCheckpointCorrupt) << id;
  }
}

TEST_F(CheckpointCatalogTest, OtherEntriesAreNoCheckpoints) {
  Save(1);
  for (const char* name : {"checkpoint-2.tmp", "checkpoint-", "checkpoint-x", "checkpoint-01",
                           "checkpoint--1", "other", "checkpoint-99999999999999999999"}) {
    WriteCheckpoint(absl::StrCat(paths_.checkpoints_dir(), "/", name), 2, {{"x.bin", "xx"}});
  }
  ASSERT_TRUE(WriteFileAtomically(paths_.checkpoints_dir() + "/checkpoint-8", "a file").ok());
  EXPECT_THAT(Names(), ElementsAre("jobs/a/checkpoints/1"));
}

TEST_F(CheckpointCatalogTest, ALinkedFolderIsNoCheckpoint) {
  TempDir elsewhere;
  WriteCheckpoint(elsewhere.File("c"), 5, {{"x.bin", "xx"}});
  ASSERT_TRUE(CreateDirectories(paths_.checkpoints_dir()).ok());
  ASSERT_EQ(::symlink(elsewhere.File("c").c_str(), paths_.checkpoint_dir(5).c_str()), 0);
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(ReasonOf(catalog_.Get(job_, "5").status()), Reason::kCheckpointNotFound);
}

TEST_F(CheckpointCatalogTest, AnUnknownIdIsNotFound) {
  Save(1);
  for (const std::string id : {"2", "adapter", "-1", "x", "", "../1"}) {
    const absl::Status status = catalog_.Get(job_, id).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << id;
    EXPECT_EQ(ReasonOf(status), Reason::kCheckpointNotFound) << id;
    EXPECT_EQ(MetadataOf(status, "checkpoint"), "jobs/a/checkpoints/" + id);
  }
}

TEST_F(CheckpointCatalogTest, AnAdapterWithoutAManifestIsNotWhole) {
  WriteFiles(paths_.adapter_dir(), {{"adapter_config.json", "{}"}});
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(ReasonOf(catalog_.Get(job_, "adapter").status()), Reason::kCheckpointCorrupt);
}

TEST_F(CheckpointCatalogTest, AnAdapterIsCheckedAgainstItsManifest) {
  WriteCheckpoint(paths_.adapter_dir(), 40, {{"model.safetensors", "AAAA"}});
  EXPECT_EQ(catalog_.Get(job_, "adapter")->step(), 40);
  ASSERT_TRUE(WriteFileAtomically(paths_.adapter_dir() + "/model.safetensors", "AAA").ok());
  EXPECT_EQ(ReasonOf(catalog_.Get(job_, "adapter").status()), Reason::kCheckpointCorrupt);
}

TEST_F(CheckpointCatalogTest, AUidThatIsNoneIsABug) {
  job_.set_uid("../uid-a");
  EXPECT_EQ(ReasonOf(catalog_.List(job_).status()), Reason::kBug);
  EXPECT_EQ(ReasonOf(catalog_.Get(job_, "1").status()), Reason::kBug);
}

}  // namespace
}  // namespace traind::artifacts
