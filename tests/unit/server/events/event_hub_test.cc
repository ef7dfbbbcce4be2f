#include "server/events/event_hub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace traind::events {
namespace {

using Wake = EventHub::Wake;

// No wait of a passing test takes that long.
constexpr absl::Duration kLong = absl::Minutes(2);

// A hub that knows the job, with its newest sequence at 3.
class EventHubTest : public testing::Test {
 protected:
  EventHubTest() { hub_.Publish("a", 3); }

  EventHub hub_;
};

TEST_F(EventHubTest, ReturnsAtOnceIfThereIsSomethingNew) {
  EXPECT_EQ(hub_.Wait("a", 2, kLong), Wake::kNewEvents);
  EXPECT_EQ(hub_.Wait("a", 0, absl::ZeroDuration()), Wake::kNewEvents);
}

TEST_F(EventHubTest, TimesOutIfThereIsNothingNew) {
  EXPECT_EQ(hub_.Wait("a", 3, absl::ZeroDuration()), Wake::kTimeout);
  EXPECT_EQ(hub_.Wait("a", 4, absl::Milliseconds(1)), Wake::kTimeout);
}

TEST_F(EventHubTest, AnOldSequenceChangesNothing) {
  hub_.Publish("a", 2);
  EXPECT_EQ(hub_.Wait("a", 2, absl::ZeroDuration()), Wake::kNewEvents);
  EXPECT_EQ(hub_.Wait("a", 3, absl::ZeroDuration()), Wake::kTimeout);
}

TEST_F(EventHubTest, JobsAreApart) {
  hub_.Publish("b", 9);
  EXPECT_EQ(hub_.Wait("a", 3, absl::ZeroDuration()), Wake::kTimeout);
  EXPECT_EQ(hub_.Wait("b", 8, absl::ZeroDuration()), Wake::kNewEvents);
}

TEST_F(EventHubTest, APublishWakesEveryWaiter) {
  std::vector<std::thread> waiters;
  std::atomic<int> woken{0};
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&] { woken += hub_.Wait("a", 3, kLong) == Wake::kNewEvents; });
  }
  hub_.Publish("a", 4);
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(woken, 8);
}

TEST_F(EventHubTest, ADeletionWakesItsWaiters) {
  std::thread waiter([&] { EXPECT_EQ(hub_.Wait("a", 3, kLong), Wake::kDeleted); });
  hub_.Forget("a");
  waiter.join();
  EXPECT_EQ(hub_.Wait("a", 3, kLong), Wake::kDeleted);
}

TEST_F(EventHubTest, AStopWakesAllAndForEver) {
  hub_.Publish("b", 1);
  std::thread a([&] { EXPECT_EQ(hub_.Wait("a", 3, kLong), Wake::kStopping); });
  std::thread b([&] { EXPECT_EQ(hub_.Wait("b", 1, kLong), Wake::kStopping); });
  hub_.Stop();
  a.join();
  b.join();
  EXPECT_EQ(hub_.Wait("a", 0, kLong), Wake::kStopping);
  EXPECT_EQ(hub_.Wait("unknown", 0, kLong), Wake::kStopping);
}

TEST_F(EventHubTest, AJobThatIsNotKnownMustBeLookedUpOnce) {
  EXPECT_EQ(hub_.Wait("new", 5, kLong), Wake::kNewEvents);
  EXPECT_EQ(hub_.Wait("new", 5, absl::ZeroDuration()), Wake::kTimeout);
  hub_.Publish("new", 6);
  EXPECT_EQ(hub_.Wait("new", 5, absl::ZeroDuration()), Wake::kNewEvents);
}

// One writer, several readers that read up to the newest number and wait for more: each must see
// the last one, whatever the order of publishing and waiting.
TEST_F(EventHubTest, NoWakeUpIsLost) {
  constexpr int64_t kLast = 20'000;
  std::atomic<int64_t> stored{3};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      int64_t seen = 0;
      while (seen < kLast) {
        ASSERT_EQ(hub_.Wait("a", seen, kLong), Wake::kNewEvents);
        seen = stored.load();
      }
    });
  }
  for (int64_t sequence = 4; sequence <= kLast; ++sequence) {
    stored = sequence;
    hub_.Publish("a", sequence);
  }
  for (std::thread& reader : readers) reader.join();
}

TEST_F(EventHubTest, MemoryIsBounded) {
  for (int i = 0; i < 50'000; ++i) hub_.Publish(absl::StrCat("job-", i), 1);
  EXPECT_LE(hub_.SizeForTest(), 10'000u);
}

TEST_F(EventHubTest, AForgottenJobLosesNoEvent) {
  for (int i = 0; i < 20'000; ++i) hub_.Publish(absl::StrCat("job-", i), 1);
  // `a` may have been forgotten, but its watcher is not told to sleep over event 3.
  EXPECT_EQ(hub_.Wait("a", 2, kLong), Wake::kNewEvents);
}

TEST_F(EventHubTest, AJobThatSomebodyWaitsForIsNotForgotten) {
  std::atomic<bool> done{false};
  std::thread waiter([&] {
    EXPECT_EQ(hub_.Wait("a", 3, kLong), Wake::kNewEvents);
    done = true;
  });
  for (int i = 0; i < 30'000; ++i) hub_.Publish(absl::StrCat("job-", i), 1);
  hub_.Publish("a", 4);
  waiter.join();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace traind::events
