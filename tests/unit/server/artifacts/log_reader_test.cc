#include "server/artifacts/log_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"

namespace traind::artifacts {
namespace {

class LogReaderTest : public testing::Test {
 protected:
  void Write(const std::string& text) { ASSERT_TRUE(WriteFileAtomically(path(), text).ok()); }
  std::string path() const { return folder_.File("worker.log"); }

  LogPiece Read(int64_t offset, size_t max_bytes, bool complete) {
    const absl::StatusOr<LogPiece> piece = ReadLog(path(), offset, max_bytes, complete);
    EXPECT_TRUE(piece.ok()) << piece.status();
    return *piece;
  }

  TempDir folder_;
};

TEST_F(LogReaderTest, ReadsAShortLogAtOnce) {
  Write("one\ntwo\n");
  const LogPiece piece = Read(0, 100, false);
  EXPECT_EQ(piece.data, "one\ntwo\n");
  EXPECT_EQ(piece.next_offset, 8);
  EXPECT_TRUE(piece.at_end);
}

TEST_F(LogReaderTest, CutsAtLineEnds) {
  Write("one\ntwo\nthree\n");
  const LogPiece piece = Read(0, 10, false);
  EXPECT_EQ(piece.data, "one\ntwo\n");
  EXPECT_EQ(piece.next_offset, 8);
  EXPECT_FALSE(piece.at_end);
  EXPECT_EQ(Read(8, 10, false).data, "three\n");
}

TEST_F(LogReaderTest, HoldsHalfALineBackWhileItIsWritten) {
  Write("one\ntw");
  const LogPiece running = Read(0, 100, false);
  EXPECT_EQ(running.data, "one\n");
  EXPECT_TRUE(running.at_end);
  EXPECT_EQ(Read(4, 100, false).data, "");
  EXPECT_EQ(Read(4, 100, false).next_offset, 4);
}

TEST_F(LogReaderTest, TheLastLineOfAnEndedAttemptIsNotLost) {
  Write("one\ntw");
  const LogPiece ended = Read(0, 100, true);
  EXPECT_EQ(ended.data, "one\ntw");
  EXPECT_TRUE(ended.at_end);
  EXPECT_EQ(ended.next_offset, 6);
}

TEST_F(LogReaderTest, ALineLongerThanAPieceComesInPieces) {
  Write(std::string(25, 'x') + "\nend\n");
  std::string all;
  int64_t offset = 0;
  int pieces = 0;
  while (offset < 30) {
    const LogPiece piece = Read(offset, 10, false);
    ASSERT_FALSE(piece.data.empty());
    all += piece.data;
    offset = piece.next_offset;
    ++pieces;
  }
  EXPECT_EQ(all, std::string(25, 'x') + "\nend\n");
  EXPECT_EQ(pieces, 3);
}

TEST_F(LogReaderTest, PiecesOfAnySizeAreTheWholeLog) {
  const std::string text = "a\n\nlong line\nx\n\n\nlast without an end";
  Write(text);
  for (size_t size = 1; size < text.size() + 2; ++size) {
    std::string all;
    int64_t offset = 0;
    bool at_end = false;
    while (!at_end) {
      const LogPiece piece = Read(offset, size, true);
      all += piece.data;
      offset = piece.next_offset;
      at_end = piece.at_end;
    }
    EXPECT_EQ(all, text) << size;
  }
}

TEST_F(LogReaderTest, ALogThatIsNotThereYetIsEmpty) {
  const LogPiece piece = Read(0, 100, false);
  EXPECT_EQ(piece.data, "");
  EXPECT_TRUE(piece.at_end);
}

TEST_F(LogReaderTest, TheEndIsAPlaceToReadFrom) {
  Write("one\n");
  EXPECT_EQ(Read(4, 100, false).data, "");
  EXPECT_TRUE(Read(4, 100, true).at_end);
}

TEST_F(LogReaderTest, AnOffsetOutsideIsRefusedWithTheSize) {
  Write("one\n");
  for (const int64_t offset : {int64_t{-1}, int64_t{5}, INT64_MAX, INT64_MIN}) {
    const absl::Status status = ReadLog(path(), offset, 100, false).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(MetadataOf(status, "size"), "4");
  }
}

TEST_F(LogReaderTest, BytesThatAreNoTextAreKept) {
  const std::string bytes("\0\xff\n\x80", 4);
  Write(bytes);
  EXPECT_EQ(Read(0, 100, true).data, bytes);
}

TEST_F(LogReaderTest, ALinkIsNotFollowed) {
  ASSERT_TRUE(WriteFileAtomically(folder_.File("secret"), "secret\n").ok());
  ASSERT_EQ(::symlink(folder_.File("secret").c_str(), path().c_str()), 0);
  EXPECT_FALSE(ReadLog(path(), 0, 100, true).ok());
}

}  // namespace
}  // namespace traind::artifacts
