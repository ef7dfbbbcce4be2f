#include "server/controller/work_queue.h"

#include <atomic>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"
#include "tests/support/wait_until.h"

namespace traind::controller {
namespace {

using testing::ElementsAre;

TEST(WorkQueueTest, RunsWhatIsPostedInOrderOnOneThread) {
  FakeClock clock;
  WorkQueue queue(clock);
  std::vector<int> order;
  queue.Post([&] { order.push_back(1); });
  queue.Start();
  queue.Post([&] { order.push_back(2); });
  EXPECT_EQ(queue.Run([&] {
    order.push_back(3);
    return 7;
  }),
            7);
  EXPECT_THAT(order, ElementsAre(1, 2, 3));
}

TEST(WorkQueueTest, RunsLaterWorkOnceItsTimeHasCome) {
  FakeClock clock;
  WorkQueue queue(clock);
  queue.Start();
  std::atomic<int> done = 0;
  queue.PostAt(clock.Now() + absl::Hours(2), [&] { done += 10; });
  queue.PostAt(clock.Now() + absl::Hours(1), [&] { done += 1; });
  EXPECT_EQ(queue.Run([&] { return done.load(); }), 0);
  clock.Advance(absl::Hours(1));
  EXPECT_TRUE(WaitUntil([&] { return done == 1; }));
  clock.Advance(absl::Hours(1));
  EXPECT_TRUE(WaitUntil([&] { return done == 11; }));
}

TEST(WorkQueueTest, StopFinishesWhatIsPostedAndRefusesTheRest) {
  FakeClock clock;
  WorkQueue queue(clock);
  bool ran = false;
  queue.Post([&] { ran = true; });
  queue.PostAt(clock.Now() + absl::Hours(1), [] { FAIL() << "not due"; });
  queue.Stop();
  EXPECT_TRUE(ran) << "somebody may wait for it, even if the thread never started";
  EXPECT_FALSE(queue.Post([] { FAIL(); }));
  EXPECT_FALSE(queue.Run([] { return 1; }).has_value());
  queue.Stop();
}

}  // namespace
}  // namespace traind::controller
