#include "client/cmd/checkpoint/checkpoint_download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cmd/checkpoint/download.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/fake_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_streams.h"

namespace traind::client {
namespace {

using ::testing::HasSubstr;

// SHA-256 of `hello` and of `wide world`, by sha256sum.
constexpr char kHello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
constexpr char kWorld[] = "7a445d034172d2301cf7e209ec5ba1deb662d50f819e80dbb814943b64a2d5e9";

v1::CheckpointChunk Chunk(const v1::CheckpointFile* file, const std::string& data,
                          int64_t offset = 0) {
  v1::CheckpointChunk chunk;
  if (file != nullptr) *chunk.mutable_file() = *file;
  chunk.set_data(data);
  chunk.set_offset(offset);
  return chunk;
}

class CheckpointDownloadTest : public ::testing::Test {
 protected:
  CheckpointDownloadTest() {
    AddFile("a.txt", 5, kHello);
    AddFile("sub/b.txt", 10, kWorld);
    client_.checkpoint.set_name("jobs/run/checkpoints/25");
  }

  void AddFile(const std::string& path, int64_t size, const std::string& sha256) {
    v1::CheckpointFile* file = client_.checkpoint.add_files();
    file->set_path(path);
    file->set_size_bytes(size);
    file->set_sha256(sha256);
  }
  const v1::CheckpointFile* File(int i) { return &client_.checkpoint.files(i); }

  absl::StatusOr<ExitCode> Download() {
    CheckpointDownloadOptions options;
    options.checkpoint = "run/25";
    options.to = target_;
    return RunCheckpointDownload(options, streams_.io, client_);
  }

  TempDir dir_;
  std::string target_ = dir_.File("target");
  FakeClient client_;
  TestStreams streams_;
};

TEST_F(CheckpointDownloadTest, WritesVerifiedFilesUnderTheirName) {
  client_.download = {{{Chunk(File(0), "hello"), Chunk(File(1), "wide "), Chunk(nullptr, "world")},
                       absl::OkStatus()}};
  ASSERT_EQ(Download().value(), ExitCode::kOk);
  EXPECT_EQ(ReadFile(target_ + "/a.txt").value(), "hello");
  EXPECT_EQ(ReadFile(target_ + "/sub/b.txt").value(), "wide world");
  EXPECT_FALSE(FileExists(target_ + ".partial"));
  EXPECT_THAT(streams_.out.str(), HasSubstr("2 files, 15 B, SHA-256 verified"));
  EXPECT_EQ(Download().status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(CheckpointDownloadTest, GoesOnWhereAStreamBroke) {
  client_.download = {
      {{Chunk(File(0), "hello"), Chunk(File(1), "wide ")}, absl::UnavailableError("reset")},
      {{Chunk(File(1), "world", 5)}, absl::OkStatus()}};
  ASSERT_EQ(Download().value(), ExitCode::kOk);
  EXPECT_EQ(client_.download_requests[1].offset(), 10);
  EXPECT_EQ(ReadFile(target_ + "/sub/b.txt").value(), "wide world");
}

TEST_F(CheckpointDownloadTest, GoesOnInAnotherProcess) {
  client_.download = {{{Chunk(File(0), "hel")}, absl::PermissionDeniedError("token expired")}};
  EXPECT_FALSE(Download().ok());
  EXPECT_FALSE(FileExists(target_));
  // A daemon that cannot begin in the middle sends everything again.
  client_.download = {{{Chunk(File(0), "hello"), Chunk(File(1), "wide world")}, absl::OkStatus()}};
  ASSERT_EQ(Download().value(), ExitCode::kOk);
  EXPECT_EQ(client_.download_requests.back().offset(), 3);
  EXPECT_EQ(ReadFile(target_ + "/a.txt").value(), "hello");
}

TEST_F(CheckpointDownloadTest, AWrongHashIsRefusedAndFetchedAnew) {
  client_.download = {{{Chunk(File(0), "hallo"), Chunk(File(1), "wide world")}, absl::OkStatus()}};
  const auto result = Download();
  EXPECT_EQ(ReasonOf(result.status()), Reason::kCheckpointCorrupt);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("a.txt: its SHA-256 is "));
  EXPECT_FALSE(FileExists(target_));
  client_.download = {{{Chunk(File(0), "hello"), Chunk(File(1), "wide world")}, absl::OkStatus()}};
  EXPECT_EQ(Download().value(), ExitCode::kOk);
  EXPECT_EQ(client_.download_requests.back().offset(), 0);
}

TEST_F(CheckpointDownloadTest, ChunksThatDoNotFitTheListAreRefused) {
  for (const v1::CheckpointChunk& wrong :
       {Chunk(File(1), "wide world"), Chunk(File(0), "hello!"), Chunk(File(0), "o", 4)}) {
    client_.download = {{{wrong}, absl::OkStatus()}};
    EXPECT_EQ(ReasonOf(Download().status()), Reason::kCheckpointCorrupt) << wrong.DebugString();
  }
}

TEST_F(CheckpointDownloadTest, PathsThatLeadOutsideAreRefused) {
  for (const char* path : {"../x", "/etc/x", "sub/../../x", "", ".", "sub/"}) {
    v1::Checkpoint checkpoint;
    checkpoint.add_files()->set_path(path);
    EXPECT_EQ(CheckpointDownload::Open(checkpoint, target_).status().code(),
              absl::StatusCode::kDataLoss)
        << path;
  }
}

TEST_F(CheckpointDownloadTest, FilesOfAnOlderDownloadDoNotStay) {
  ASSERT_TRUE(CreateDirectories(target_ + ".partial").ok());
  ASSERT_TRUE(WriteFileAtomically(target_ + ".partial/old.bin", "x").ok());
  client_.download = {{{Chunk(File(0), "hello"), Chunk(File(1), "wide world")}, absl::OkStatus()}};
  ASSERT_TRUE(Download().ok());
  EXPECT_FALSE(FileExists(target_ + "/old.bin"));
}

TEST_F(CheckpointDownloadTest, GivesUpOnADaemonThatSendsNothing) {
  client_.download.assign(30, {{}, absl::OkStatus()});
  EXPECT_EQ(Download().status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace traind::client
