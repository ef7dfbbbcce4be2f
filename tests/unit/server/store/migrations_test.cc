#include "server/store/migrations.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/test_store.h"

namespace traind::store {
namespace {

class MigrationsTest : public testing::Test {
 protected:
  std::unique_ptr<Database> Open() {
    auto database = Database::Open({folder_.File("traind.db"), false, absl::Seconds(1), 0});
    EXPECT_TRUE(database.ok()) << database.status();
    return *std::move(database);
  }

  static int64_t Version(Database& database) {
    Statement statement(database, "PRAGMA user_version");
    EXPECT_TRUE(*statement.Step());
    return statement.Int(0);
  }

  TempDir folder_;
};

TEST_F(MigrationsTest, ANewFileGetsTheCurrentVersion) {
  const auto database = Open();
  EXPECT_EQ(Version(*database), 0);
  ASSERT_TRUE(Migrate(*database).ok());
  EXPECT_EQ(Version(*database), CurrentSchemaVersion());
  EXPECT_TRUE(CheckIntegrity(*database).ok());
}

TEST_F(MigrationsTest, RunningThemAgainChangesNothing) {
  const auto database = Open();
  ASSERT_TRUE(Migrate(*database).ok());
  ASSERT_TRUE(Migrate(*database).ok());
  EXPECT_EQ(Version(*database), CurrentSchemaVersion());
}

TEST_F(MigrationsTest, AStepThatFailsLeavesNoHalf) {
  const auto database = Open();
  // The step's last table is there already, so that it fails at its end.
  ASSERT_TRUE(database->Execute("CREATE TABLE request_ids (id TEXT)").ok());
  EXPECT_FALSE(Migrate(*database).ok());
  EXPECT_EQ(Version(*database), 0);
  EXPECT_FALSE(database->InTransaction());
  EXPECT_FALSE(database->Execute("SELECT * FROM jobs").ok());
}

TEST_F(MigrationsTest, ANewerFileIsRefusedAndNotTouched) {
  {
    const auto database = Open();
    ASSERT_TRUE(Migrate(*database).ok());
    ASSERT_TRUE(database->Execute("PRAGMA user_version=99").ok());
  }
  const absl::Status status =
      SqliteJobStore::Open({folder_.File("traind.db"), absl::Seconds(1), 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), Reason::kStoreInvalid);
  EXPECT_EQ(
      status.message(),
      absl::StrCat("the database has version 99, but this traind knows ", CurrentSchemaVersion(),
                   " at most; start the traind that wrote it, or a newer one"));
  EXPECT_EQ(Version(*Open()), 99);
}

TEST_F(MigrationsTest, ADamagedFileIsToldApart) {
  const std::string path = folder_.File("traind.db");
  {
    auto store = SqliteJobStore::Open({path, absl::Seconds(1), 0});
    ASSERT_TRUE(store.ok());
    for (int i = 0; i < 100; ++i) {
      const v1::Job job = TestJob(absl::StrCat("j", i));
      ASSERT_TRUE((*store)->CreateJob(jobs::QueuedJob(job, TestTime()), {}).ok());
    }
  }
  // Noise over the pages behind the first, which holds the schema.
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    const std::string noise(4096 * 8, '\x5a');
    file.write(noise.data(), static_cast<std::streamsize>(noise.size()));
    ASSERT_TRUE(file.good());
  }
  const absl::Status status = SqliteJobStore::Open({path, absl::Seconds(1), 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReasonOf(status), Reason::kStoreInvalid);
}

}  // namespace
}  // namespace traind::store
