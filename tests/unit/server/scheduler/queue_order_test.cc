#include "server/scheduler/queue_order.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/test_snapshots.h"

namespace traind::scheduler {
namespace {

TEST(QueueOrderTest, HigherPriorityGoesFirstWhateverTheAge) {
  EXPECT_TRUE(GoesBefore(TestQueuedJob("b", 2, 0, 1), TestQueuedJob("a", 1, 100, 1)));
  EXPECT_FALSE(GoesBefore(TestQueuedJob("a", 1, 100, 1), TestQueuedJob("b", 2, 0, 1)));
}

TEST(QueueOrderTest, AtEqualPriorityTheOlderGoesFirst) {
  EXPECT_TRUE(GoesBefore(TestQueuedJob("b", 1, 10, 1), TestQueuedJob("a", 1, 9, 1)));
  EXPECT_FALSE(GoesBefore(TestQueuedJob("a", 1, 9, 1), TestQueuedJob("b", 1, 10, 1)));
}

TEST(QueueOrderTest, TheUidDecidesAtLast) {
  EXPECT_TRUE(GoesBefore(TestQueuedJob("a", 1, 9, 1), TestQueuedJob("b", 1, 9, 1)));
  EXPECT_FALSE(GoesBefore(TestQueuedJob("b", 1, 9, 1), TestQueuedJob("a", 1, 9, 1)));
}

TEST(QueueOrderTest, SizeDoesNotMatter) {
  EXPECT_TRUE(GoesBefore(TestQueuedJob("a", 1, 9, 8), TestQueuedJob("b", 1, 9, 1)));
}

TEST(QueueOrderTest, IsAStrictTotalOrder) {
  std::vector<QueuedJob> jobs;
  for (const char* id : {"a", "b"}) {
    for (const int priority : {0, 5}) {
      for (const int age : {0, 3}) jobs.push_back(TestQueuedJob(id, priority, age, 1));
    }
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (size_t j = 0; j < jobs.size(); ++j) {
      const bool before = GoesBefore(jobs[i], jobs[j]);
      const bool after = GoesBefore(jobs[j], jobs[i]);
      EXPECT_EQ(before || after, i != j);
      EXPECT_FALSE(before && after);
    }
  }
}

}  // namespace
}  // namespace traind::scheduler
