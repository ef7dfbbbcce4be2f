#include "worker/session/signal_watcher.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/time/clock.h"

namespace traind {
namespace {

// Polls with a deadline: signals arrive on a thread of the watcher.
bool BecomesAtLeast(const StopFlag& flag, StopKind kind) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (flag.kind() < kind && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  return flag.kind() == kind;
}

TEST(SignalWatcherTest, TheFirstSignalStopsWithACheckpointTheSecondWithout) {
  StopFlag flag;
  SignalWatcher watcher(&flag);
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(BecomesAtLeast(flag, StopKind::kStopWithCheckpoint));
  ::kill(::getpid(), SIGINT);
  EXPECT_TRUE(BecomesAtLeast(flag, StopKind::kStop));
}

TEST(SignalWatcherTest, WithoutASignalNothingIsAskedFor) {
  StopFlag flag;
  { SignalWatcher watcher(&flag); }
  EXPECT_EQ(flag.kind(), StopKind::kNone);
}

TEST(StopFlagTest, AMilderRequestNeverReplacesAStrongerOne) {
  StopFlag flag;
  flag.Request(StopKind::kFenced);
  flag.Request(StopKind::kStopWithCheckpoint);
  EXPECT_EQ(flag.kind(), StopKind::kFenced);
}

}  // namespace
}  // namespace traind
