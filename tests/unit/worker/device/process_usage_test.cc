#include "worker/device/process_usage.h"

#include <gtest/gtest.h>

#include <vector>

#include "worker/device/arena.h"

namespace traind {
namespace {

TEST(ProcessUsageTest, TouchedMemoryShowsAndThePeakStays) {
  constexpr int64_t kBytes = 64 << 20;
  const MemoryUsage before = ReadMemoryUsage();
  ASSERT_GT(before.resident_bytes, 0);
  {
    const std::vector<char> block(kBytes, 1);
    ASSERT_EQ(block.back(), 1);
    EXPECT_GT(ReadMemoryUsage().resident_bytes, before.resident_bytes + kBytes / 2);
  }
  EXPECT_GT(ReadMemoryUsage().peak_resident_bytes, before.resident_bytes + kBytes / 2);
}

TEST(ProcessUsageTest, CpuTimeGrowsWithWork) {
  const absl::Duration before = CpuTimeUsed();
  volatile double sum = 0;
  while (CpuTimeUsed() < before + absl::Milliseconds(20)) sum = sum + 1;
  EXPECT_GT(sum, 0);
}

TEST(ArenaTest, PiecesAreAlignedApartAndReused) {
  Arena arena;
  const auto walk = [&](int64_t count) {
    arena.BeginMeasuring();
    EXPECT_EQ(arena.Take(count), nullptr);
    arena.Take(3);
    EXPECT_TRUE(arena.Reserve().ok());
    float* first = arena.Take(count);
    float* second = arena.Take(3);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 64, 0u);
    EXPECT_GE(second - first, count + 16);
    return first;
  };
  const float* block = walk(1000);
  const int64_t capacity = arena.capacity_bytes();
  EXPECT_EQ(walk(10), block);
  EXPECT_EQ(arena.capacity_bytes(), capacity);
  walk(2000);
  EXPECT_GT(arena.capacity_bytes(), capacity);
}

TEST(ArenaTest, TooMuchIsAnError) {
  Arena arena;
  arena.BeginMeasuring();
  arena.Take(int64_t{1} << 58);
  EXPECT_EQ(arena.Reserve().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace traind
