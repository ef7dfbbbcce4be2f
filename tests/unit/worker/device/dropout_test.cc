#include "worker/device/cpu/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace traind::cpu {
namespace {

constexpr int64_t kRows = 300;
constexpr int64_t kCols = 577;

std::vector<float> Dropped(const DropoutMask& mask) {
  const std::vector<float> ones(kRows * kCols, 1.0f);
  std::vector<float> y(ones.size());
  ApplyDropout(mask, ones.data(), kRows, kCols, y.data());
  return y;
}

int64_t Zeros(const std::vector<float>& values) {
  int64_t zeros = 0;
  for (const float value : values) zeros += value == 0;
  return zeros;
}

TEST(DropoutTest, DropsTheShareAskedForAndScalesTheRest) {
  for (const double probability : {0.05, 0.5}) {
    const std::vector<float> y = Dropped({42, probability});
    const double n = static_cast<double>(y.size());
    const double deviation = std::sqrt(n * probability * (1 - probability));
    EXPECT_NEAR(static_cast<double>(Zeros(y)), n * probability, 4 * deviation);
    for (const float value : y) {
      ASSERT_FLOAT_EQ(value, value == 0 ? 0 : static_cast<float>(1 / (1 - probability)));
    }
  }
}

TEST(DropoutTest, ZeroKeepsEverything) { EXPECT_EQ(Zeros(Dropped({42, 0})), 0); }

TEST(DropoutTest, BackwardDropsTheSameElementsAndAdds) {
  const DropoutMask mask{7, 0.3};
  const std::vector<float> y = Dropped(mask);
  const std::vector<float> ones(y.size(), 1.0f);
  std::vector<float> dx(y.size(), 2.0f);
  AddDropoutBackward(mask, ones.data(), kRows, kCols, dx.data());
  for (size_t i = 0; i < y.size(); ++i) ASSERT_FLOAT_EQ(dx[i], 2 + y[i]);
  for (int64_t i = 0; i < kRows * kCols; ++i) {
    ASSERT_EQ(Keeps(mask, i / kCols, i % kCols), y[static_cast<size_t>(i)] != 0);
  }
}

// Masks of neighbouring keys, rows and columns agree no more often than chance says.
TEST(DropoutTest, MasksAreIndependent) {
  const std::vector<float> a = Dropped({DeriveKey(1, 0), 0.5});
  const std::vector<float> b = Dropped({DeriveKey(1, 1), 0.5});
  const double n = static_cast<double>(a.size());
  const auto agreements = [&](const std::vector<float>& x, const std::vector<float>& y,
                              size_t shift) {
    int64_t count = 0;
    for (size_t i = 0; i + shift < x.size(); ++i) count += (x[i] == 0) == (y[i + shift] == 0);
    return static_cast<double>(count);
  };
  const double tolerance = 4 * std::sqrt(n) / 2 + kCols;
  EXPECT_NEAR(agreements(a, b, 0), n / 2, tolerance);
  EXPECT_NEAR(agreements(a, a, 1), n / 2, tolerance);
  EXPECT_NEAR(agreements(a, a, kCols), n / 2, tolerance);
}

}  // namespace
}  // namespace traind::cpu
