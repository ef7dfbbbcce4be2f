#include "server/store/commit_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind::store {
namespace {

// A queue over a table `t (n INTEGER PRIMARY KEY, text TEXT)`.
class CommitQueueTest : public testing::Test {
 protected:
  void Open(int64_t max_pages = 0) {
    auto database = Database::Open({Path(), false, absl::Seconds(5), max_pages});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)").ok());
    queue_ = std::make_unique<CommitQueue>(*std::move(database));
  }

  std::string Path() const { return folder_.File("test.db"); }

  static absl::Status Insert(Database& database, int64_t n, const std::string& text = "") {
    Statement insert(database, "INSERT INTO t (n, text) VALUES (?, ?)");
    return insert.Bind(n).Bind(text).Run();
  }

  // What another connection sees.
  std::vector<int64_t> Rows() {
    auto database = Database::Open({Path(), true, absl::Seconds(5), 0});
    Statement select(**database, "SELECT n FROM t ORDER BY n");
    std::vector<int64_t> rows;
    while (*select.Step()) rows.push_back(select.Int(0));
    return rows;
  }

  // Runs the changes so that all but the first wait together behind it.
  std::vector<absl::Status> RunTogether(std::vector<CommitQueue::Change> changes) {
    absl::Notification first_runs;
    absl::Notification go_on;
    std::thread blocker([&] {
      EXPECT_TRUE(queue_
                      ->Run([&](Database&) {
                        if (!first_runs.HasBeenNotified()) first_runs.Notify();
                        go_on.WaitForNotification();
                        return absl::OkStatus();
                      })
                      .ok());
    });
    first_runs.WaitForNotification();
    std::vector<absl::Status> statuses(changes.size());
    std::vector<std::thread> callers;
    for (size_t i = 0; i < changes.size(); ++i) {
      callers.emplace_back([&, i] { statuses[i] = queue_->Run(changes[i]); });
    }
    EXPECT_TRUE(WaitUntil([&] { return queue_->WaitingForTest() == changes.size(); }));
    go_on.Notify();
    blocker.join();
    for (std::thread& caller : callers) caller.join();
    return statuses;
  }

  TempDir folder_;
  std::unique_ptr<CommitQueue> queue_;
};

TEST_F(CommitQueueTest, AChangeIsDurableWhenRunReturns) {
  Open();
  ASSERT_TRUE(queue_->Run([](Database& database) { return Insert(database, 1); }).ok());
  EXPECT_THAT(Rows(), testing::ElementsAre(1));
}

TEST_F(CommitQueueTest, AFailedChangeLeavesNothing) {
  Open();
  const absl::Status status = queue_->Run([](Database& database) {
    EXPECT_TRUE(Insert(database, 1).ok());
    return absl::AbortedError("no");
  });
  EXPECT_EQ(status, absl::AbortedError("no"));
  EXPECT_THAT(Rows(), testing::IsEmpty());
}

TEST_F(CommitQueueTest, OneFailureOfAGroupHurtsNoOther) {
  Open();
  std::vector<CommitQueue::Change> changes;
  for (int i = 0; i < 20; ++i) {
    changes.push_back([i](Database& database) -> absl::Status {
      TRAIND_RETURN_IF_ERROR(Insert(database, i));
      return i % 2 == 0 ? absl::OkStatus() : absl::AbortedError(absl::StrCat(i));
    });
  }
  const std::vector<absl::Status> statuses = RunTogether(changes);
  for (int i = 0; i < 20; ++i) {
    const absl::Status& status = statuses[static_cast<size_t>(i)];
    EXPECT_EQ(status, i % 2 == 0 ? absl::OkStatus() : absl::AbortedError(absl::StrCat(i)));
  }
  EXPECT_THAT(Rows(), testing::ElementsAre(0, 2, 4, 6, 8, 10, 12, 14, 16, 18));
}

TEST_F(CommitQueueTest, AConstraintFailureIsTheCallersOwn) {
  Open();
  const auto insert = [](Database& database) { return Insert(database, 7); };
  const std::vector<absl::Status> statuses = RunTogether({insert, insert, insert});
  int ok = 0;
  for (const absl::Status& status : statuses) ok += status.ok() ? 1 : 0;
  EXPECT_EQ(ok, 1);
  EXPECT_THAT(Rows(), testing::ElementsAre(7));
}

// A change that does not fit must not take the small ones of its group with it.
TEST_F(CommitQueueTest, AFullDiskStopsOnlyWhatDoesNotFit) {
  Open(/*max_pages=*/16);
  std::vector<CommitQueue::Change> changes;
  for (int i = 0; i < 8; ++i) {
    const std::string text(i == 3 ? 1 << 20 : 10, 'x');
    changes.push_back([i, text](Database& database) { return Insert(database, i, text); });
  }
  const std::vector<absl::Status> statuses = RunTogether(changes);
  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_EQ(ReasonOf(statuses[i]), i == 3 ? Reason::kDiskFull : Reason::kUnspecified) << i;
    EXPECT_EQ(statuses[i].ok(), i != 3) << statuses[i];
  }
  EXPECT_THAT(Rows(), testing::ElementsAre(0, 1, 2, 4, 5, 6, 7));
}

// SQLite may give up the whole transaction, and all savepoints with it: the others are tried again.
TEST_F(CommitQueueTest, ALostTransactionIsTriedAgainOneByOne) {
  Open();
  std::vector<CommitQueue::Change> changes;
  for (int i = 0; i < 8; ++i) {
    changes.push_back([i](Database& database) -> absl::Status {
      TRAIND_RETURN_IF_ERROR(Insert(database, i));
      if (i != 3) return absl::OkStatus();
      TRAIND_RETURN_IF_ERROR(database.Execute("ROLLBACK"));
      return absl::DataLossError("gone");
    });
  }
  const std::vector<absl::Status> statuses = RunTogether(changes);
  for (size_t i = 0; i < statuses.size(); ++i) {
    EXPECT_EQ(statuses[i], i == 3 ? absl::DataLossError("gone") : absl::OkStatus()) << i;
  }
  EXPECT_THAT(Rows(), testing::ElementsAre(0, 1, 2, 4, 5, 6, 7));
}

TEST_F(CommitQueueTest, ManyCallersAllGetTheirOwnAnswer) {
  Open();
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i) {
    callers.emplace_back([this, i] {
      for (int j = 0; j < 10; ++j) {
        const int64_t n = i * 100 + j;
        EXPECT_TRUE(queue_->Run([n](Database& database) { return Insert(database, n); }).ok());
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(Rows(), testing::SizeIs(160));
}

TEST_F(CommitQueueTest, AnotherWriterMakesItBusyNotWrong) {
  auto database = Database::Open({Path(), false, absl::Milliseconds(1), 0});
  ASSERT_TRUE((*database)->Execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)").ok());
  queue_ = std::make_unique<CommitQueue>(*std::move(database));
  auto other = Database::Open({Path(), false, absl::Seconds(5), 0});
  ASSERT_TRUE((*other)->Execute("BEGIN IMMEDIATE").ok());
  const auto insert = [](Database& connection) { return Insert(connection, 1); };
  const absl::Status status = queue_->Run(insert);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(status), Reason::kStoreBusy);
  ASSERT_TRUE((*other)->Execute("ROLLBACK").ok());
  EXPECT_TRUE(queue_->Run(insert).ok());
  EXPECT_THAT(Rows(), testing::ElementsAre(1));
}

}  // namespace
}  // namespace traind::store
