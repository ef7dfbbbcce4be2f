#include "server/store/database.h"

#include <gtest/gtest.h>

#include <string>

#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"

namespace traind::store {
namespace {

class DatabaseTest : public testing::Test {
 protected:
  std::unique_ptr<Database> Open() {
    auto database = Database::Open({folder_.File("test.db"), false, absl::Seconds(1), 0});
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }

  static std::string Pragma(Database& database, const std::string& name) {
    Statement statement(database, "PRAGMA " + name);
    EXPECT_TRUE(*statement.Step());
    return std::string(statement.Bytes(0));
  }

  TempDir folder_;
};

TEST_F(DatabaseTest, IsSetUpToSurviveACrash) {
  const auto database = Open();
  EXPECT_EQ(Pragma(*database, "journal_mode"), "wal");
  EXPECT_EQ(Pragma(*database, "synchronous"), "2");  // FULL
  EXPECT_EQ(Pragma(*database, "foreign_keys"), "1");
}

TEST_F(DatabaseTest, KeepsTextNumbersAndBytes) {
  const auto database = Open();
  ASSERT_TRUE(database->Execute("CREATE TABLE t (text TEXT, number INTEGER, bytes BLOB)").ok());
  const std::string bytes("\0\xff\0", 3);
  Statement insert(*database, "INSERT INTO t VALUES (?, ?, ?)");
  ASSERT_TRUE(insert.Bind("it's").Bind(int64_t{-1}).BindBlob(bytes).Run().ok());
  EXPECT_EQ(database->changes(), 1);
  Statement select(*database, "SELECT text, number, bytes FROM t");
  ASSERT_TRUE(*select.Step());
  EXPECT_EQ(select.Bytes(0), "it's");
  EXPECT_EQ(select.Int(1), -1);
  EXPECT_EQ(select.Bytes(2), bytes);
  EXPECT_FALSE(*select.Step());
}

TEST_F(DatabaseTest, AMissingFolderIsToldWithItsPath) {
  const absl::Status status =
      Database::Open({folder_.File("none/test.db"), false, absl::Seconds(1), 0}).status();
  EXPECT_EQ(ReasonOf(status), Reason::kStoreInvalid);
  EXPECT_EQ(MetadataOf(status, "path"), folder_.File("none/test.db"));
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsNotTouched) {
  const std::string path = folder_.File("test.db");
  const std::string text(5000, 'x');
  ASSERT_TRUE(WriteFileAtomically(path, text).ok());
  const absl::Status status = Database::Open({path, false, absl::Seconds(1), 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReasonOf(status), Reason::kStoreInvalid);
  EXPECT_EQ(*ReadFile(path), text);
}

TEST_F(DatabaseTest, AWrongStatementIsABug) {
  const auto database = Open();
  Statement statement(*database, "SELECT * FROM nothing");
  statement.Bind("x");
  EXPECT_EQ(ReasonOf(statement.Step().status()), Reason::kBug);
  EXPECT_EQ(ReasonOf(database->Execute("nonsense")), Reason::kBug);
}

TEST_F(DatabaseTest, AReadOnlyConnectionCannotWrite) {
  const auto writer = Open();
  ASSERT_TRUE(writer->Execute("CREATE TABLE t (n INTEGER)").ok());
  auto reader = Database::Open({folder_.File("test.db"), true, absl::Seconds(1), 0});
  ASSERT_TRUE(reader.ok());
  EXPECT_FALSE((*reader)->Execute("INSERT INTO t VALUES (1)").ok());
}

TEST_F(DatabaseTest, KnowsWhetherATransactionIsOpen) {
  const auto database = Open();
  EXPECT_FALSE(database->InTransaction());
  ASSERT_TRUE(database->Execute("BEGIN").ok());
  EXPECT_TRUE(database->InTransaction());
  ASSERT_TRUE(database->Execute("ROLLBACK").ok());
  EXPECT_FALSE(database->InTransaction());
}

}  // namespace
}  // namespace traind::store
