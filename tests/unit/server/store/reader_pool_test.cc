#include "server/store/reader_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/temp_dir.h"

namespace traind::store {
namespace {

class ReaderPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    auto writer = Database::Open({folder_.File("test.db"), false, absl::Seconds(5), 0});
    ASSERT_TRUE(writer.ok()) << writer.status();
    writer_ = *std::move(writer);
    ASSERT_TRUE(writer_->Execute("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (1)").ok());
    pool_ = std::make_unique<ReaderPool>(
        DatabaseOptions{folder_.File("test.db"), true, absl::Seconds(5), 0});
  }

  static int64_t Count(ReaderPool::Lease& lease) {
    Statement statement(lease.database(), "SELECT COUNT(*) FROM t");
    EXPECT_TRUE(*statement.Step());
    return statement.Int(0);
  }

  TempDir folder_;
  std::unique_ptr<Database> writer_;
  std::unique_ptr<ReaderPool> pool_;
};

TEST_F(ReaderPoolTest, ALeaseSeesOneMoment) {
  auto lease = pool_->Borrow();
  ASSERT_TRUE(lease.ok());
  EXPECT_EQ(Count(*lease), 1);
  ASSERT_TRUE(writer_->Execute("INSERT INTO t VALUES (2)").ok());
  EXPECT_EQ(Count(*lease), 1);
  auto later = pool_->Borrow();
  EXPECT_EQ(Count(*later), 2);
}

TEST_F(ReaderPoolTest, AReturnedConnectionSeesNewRows) {
  for (int64_t rows = 1; rows <= 3; ++rows) {
    auto lease = pool_->Borrow();
    ASSERT_TRUE(lease.ok());
    EXPECT_EQ(Count(*lease), rows);
    ASSERT_TRUE(writer_->Execute("INSERT INTO t VALUES (0)").ok());
  }
}

TEST_F(ReaderPoolTest, ServesMoreReadersThanItKeeps) {
  std::vector<ReaderPool::Lease> leases;
  for (int i = 0; i < 20; ++i) {
    auto lease = pool_->Borrow();
    ASSERT_TRUE(lease.ok());
    leases.push_back(*std::move(lease));
  }
  for (ReaderPool::Lease& lease : leases) EXPECT_EQ(Count(lease), 1);
}

TEST_F(ReaderPoolTest, ManyThreadsReadAtOnce) {
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([this] {
      for (int j = 0; j < 50; ++j) {
        auto lease = pool_->Borrow();
        ASSERT_TRUE(lease.ok());
        EXPECT_EQ(Count(*lease), 1);
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
}

TEST_F(ReaderPoolTest, AMissingFileIsAnError) {
  ReaderPool pool({folder_.File("none.db"), true, absl::Seconds(1), 0});
  EXPECT_FALSE(pool.Borrow().ok());
}

}  // namespace
}  // namespace traind::store
