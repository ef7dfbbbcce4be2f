#include "server/artifacts/checkpoint_file_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "common/status/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_checkpoints.h"

namespace traind::artifacts {
namespace {

class CheckpointFileReaderTest : public testing::Test {
 protected:
  CheckpointFileReaderTest() {
    checkpoint_.set_path(folder_.File("c"));
    WriteFiles(checkpoint_.path(), {{"a.bin", kBytes}});
  }

  static v1::CheckpointFile File(const std::string& name, const std::string& bytes) {
    v1::CheckpointFile file;
    file.set_path(name);
    file.set_size_bytes(static_cast<int64_t>(bytes.size()));
    file.set_sha256(Sha256Hex(bytes));
    return file;
  }

  absl::Status OpenError(const v1::CheckpointFile& file) {
    return CheckpointFileReader::Open(checkpoint_, file).status();
  }

  const std::string kBytes = "0123456789";
  TempDir folder_;
  v1::Checkpoint checkpoint_;
};

TEST_F(CheckpointFileReaderTest, ReadsToTheEndInPieces) {
  for (const size_t size : {1u, 3u, 10u, 100u}) {
    auto reader = CheckpointFileReader::Open(checkpoint_, File("a.bin", kBytes));
    ASSERT_TRUE(reader.ok()) << reader.status();
    std::string all;
    while (true) {
      const absl::StatusOr<std::string> piece = (*reader)->Read(size);
      ASSERT_TRUE(piece.ok()) << piece.status();
      if (piece->empty()) break;
      EXPECT_LE(piece->size(), size);
      all += *piece;
    }
    EXPECT_EQ(all, kBytes);
    EXPECT_TRUE((*reader)->Read(size).ok());
    EXPECT_EQ((*reader)->file().path(), "a.bin");
  }
}

TEST_F(CheckpointFileReaderTest, AnEmptyFileIsWhole) {
  WriteFiles(checkpoint_.path(), {{"empty", ""}});
  auto reader = CheckpointFileReader::Open(checkpoint_, File("empty", ""));
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(*(*reader)->Read(10), "");
}

TEST_F(CheckpointFileReaderTest, AnotherSizeIsCorrupt) {
  const absl::Status status = OpenError(File("a.bin", kBytes + "x"));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReasonOf(status), Reason::kCheckpointCorrupt);
  EXPECT_EQ(MetadataOf(status, "problem"), "has 10 bytes in place of 11");
}

TEST_F(CheckpointFileReaderTest, AFlippedBitIsFoundBeforeTheEnd) {
  auto reader = CheckpointFileReader::Open(checkpoint_, File("a.bin", "0123456788"));
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->Read(100).ok());
  const absl::Status status = (*reader)->Read(100).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReasonOf(status), Reason::kCheckpointCorrupt);
}

TEST_F(CheckpointFileReaderTest, AMissingFileIsNotFound) {
  EXPECT_EQ(ReasonOf(OpenError(File("none", ""))), Reason::kCheckpointNotFound);
  checkpoint_.set_path(folder_.File("none"));
  EXPECT_EQ(ReasonOf(OpenError(File("a.bin", kBytes))), Reason::kCheckpointNotFound);
}

TEST_F(CheckpointFileReaderTest, NoNameLeadsOut) {
  WriteFiles(folder_.path(), {{"secret", "secret"}});
  WriteFiles(checkpoint_.path() + "/sub", {{"a", "x"}});
  for (const std::string name : {"../secret", "..", ".", "", "/etc/passwd", "sub/a", "./a.bin"}) {
    EXPECT_EQ(ReasonOf(OpenError(File(name, "secret"))), Reason::kCheckpointCorrupt) << name;
  }
  EXPECT_EQ(ReasonOf(OpenError(File(std::string("a.bin\0x", 7), kBytes))),
            Reason::kCheckpointCorrupt);
}

TEST_F(CheckpointFileReaderTest, LinksAreNotFollowed) {
  WriteFiles(folder_.path(), {{"secret", "secret"}});
  const std::string link = checkpoint_.path() + "/link";
  ASSERT_EQ(::symlink(folder_.File("secret").c_str(), link.c_str()), 0);
  EXPECT_EQ(MetadataOf(OpenError(File("link", "secret")), "problem"), "is a symbolic link");
  ASSERT_EQ(::symlink(checkpoint_.path().c_str(), folder_.File("linked").c_str()), 0);
  checkpoint_.set_path(folder_.File("linked"));
  EXPECT_FALSE(OpenError(File("a.bin", kBytes)).ok());
}

TEST_F(CheckpointFileReaderTest, APipeDoesNotBlock) {
  ASSERT_EQ(::mkfifo((checkpoint_.path() + "/pipe").c_str(), 0600), 0);
  EXPECT_EQ(MetadataOf(OpenError(File("pipe", "")), "problem"), "is not a plain file");
}

TEST_F(CheckpointFileReaderTest, AFolderIsNoFile) {
  ASSERT_TRUE(CreateDirectories(checkpoint_.path() + "/sub").ok());
  EXPECT_EQ(MetadataOf(OpenError(File("sub", "")), "problem"), "is not a plain file");
}

}  // namespace
}  // namespace traind::artifacts
