#include "server/api/host_stats.h"

#include <gtest/gtest.h>

#include "common/os/file.h"
#include "tests/support/temp_dir.h"

namespace traind::api {
namespace {

class HostStatsTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder_.File(name), text).ok());
  }

  TempDir folder_;
};

TEST_F(HostStatsTest, ReadsTheMachine) {
  Write("cpuinfo",
        "processor\t: 0\nmodel name\t: Fast CPU @ 3: GHz\n\nprocessor\t: 1\nmodel name\t: X\n");
  Write("meminfo", "MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n");
  Write("stat", "cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 1 1 1\n");
  HostStats stats(folder_.path());
  const HostUse use = stats.Read();
  EXPECT_EQ(use.processor, "Fast CPU @ 3: GHz");
  EXPECT_EQ(use.cores, 2);
  EXPECT_EQ(use.memory_total_bytes, 2048 * 1024);
  EXPECT_EQ(use.memory_used_bytes, 1024 * 1024);
  EXPECT_EQ(use.cpu_utilization, 0) << "no time has passed";
}

TEST_F(HostStatsTest, UtilizationIsTheShareSinceTheLastRead) {
  Write("stat", "cpu  10 0 10 70 10 0 0 0 5 0\n");
  HostStats stats(folder_.path());
  // 30 busy of 100 ticks; idle and iowait are not busy, guest time is counted once.
  Write("stat", "cpu  30 0 20 130 20 0 0 0 50 0\n");
  EXPECT_DOUBLE_EQ(stats.Read().cpu_utilization, 0.3);
  EXPECT_DOUBLE_EQ(stats.Read().cpu_utilization, 0.3) << "within a tick";
  Write("stat", "cpu  130 0 20 130 20 0 0 0 50 0\n");
  EXPECT_DOUBLE_EQ(stats.Read().cpu_utilization, 1);
}

TEST_F(HostStatsTest, WhatCannotBeReadIsZero) {
  HostStats stats(folder_.path());
  Write("stat", "cpu  a b c\n");
  Write("meminfo", "MemTotal: many kB\n");
  const HostUse use = stats.Read();
  EXPECT_EQ(use.cores, 0);
  EXPECT_EQ(use.memory_total_bytes, 0);
  EXPECT_EQ(use.cpu_utilization, 0);
}

TEST_F(HostStatsTest, ThisMachineHasCoresAndMemory) {
  HostStats stats;
  const HostUse use = stats.Read();
  EXPECT_GT(use.cores, 0);
  EXPECT_GT(use.memory_total_bytes, use.memory_used_bytes);
  EXPECT_GT(use.memory_used_bytes, 0);
}

}  // namespace
}  // namespace traind::api
