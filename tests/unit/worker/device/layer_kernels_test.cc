#include "worker/device/cpu/layer_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>
#include <random>
#include <vector>

#include "worker/device/cpu/fast_math.h"

namespace traind::cpu {
namespace {

constexpr uint32_t kSeed = 8;
constexpr double kBar = 1e-5;

// The gradient of sum(weights * f(x)) by central differences in double.
std::vector<double> NumericGradient(
    const std::function<std::vector<double>(const std::vector<double>&)>& f,
    const std::vector<float>& at, const std::vector<float>& weights) {
  std::vector<double> x(at.begin(), at.end());
  const auto value = [&] {
    const std::vector<double> y = f(x);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * static_cast<double>(weights[i]);
    return sum;
  };
  std::vector<double> gradient;
  for (double& element : x) {
    const double middle = element;
    element = middle + 1e-5;
    const double above = value();
    element = middle - 1e-5;
    const double below = value();
    element = middle;
    gradient.push_back((above - below) / 2e-5);
  }
  return gradient;
}

std::vector<float> Random(size_t size, std::mt19937& generator) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(size);
  for (float& value : values) value = normal(generator);
  return values;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected,
                double offset, const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(actual[i]) - offset - expected[i]));
  }
  std::cout << what << ": worst difference " << worst << " (bar " << kBar << ")\n";
  EXPECT_LE(worst, kBar) << what;
}

TEST(LayerKernelsTest, RmsNormEqualsTheFormulaAndItsDerivative) {
  std::mt19937 generator(kSeed);
  constexpr size_t kSize = 21;
  const std::vector<float> weight = Random(kSize, generator);
  const std::vector<float> x = Random(3 * kSize, generator);
  const std::vector<float> dy = Random(3 * kSize, generator);
  const auto formula = [&](const std::vector<double>& in) {
    std::vector<double> out(in.size());
    for (size_t row = 0; row < 3; ++row) {
      double square_sum = 0;
      for (size_t i = 0; i < kSize; ++i) {
        square_sum += in[row * kSize + i] * in[row * kSize + i];
      }
      const double scale = 1 / std::sqrt(square_sum / kSize + 1e-5);
      for (size_t i = 0; i < kSize; ++i) {
        out[row * kSize + i] = static_cast<double>(weight[i]) * in[row * kSize + i] * scale;
      }
    }
    return out;
  };
  const RmsNorm norm{weight.data(), kSize, 1e-5f};
  std::vector<float> y(x.size());
  std::vector<float> dx(x.size(), 1.0f);  // The gradient is added.
  RmsNormForward(norm, x.data(), 3, y.data());
  RmsNormBackward(norm, x.data(), dy.data(), 3, dx.data());
  ExpectNear(y, formula({x.begin(), x.end()}), 0, "forward");
  ExpectNear(dx, NumericGradient(formula, x, dy), 1, "backward");
}

TEST(LayerKernelsTest, SwigluEqualsTheFormulaAndItsDerivative) {
  std::mt19937 generator(kSeed);
  constexpr size_t kSize = 13;
  std::vector<float> gate_up = Random(2 * 2 * kSize, generator);
  const std::vector<float> dy = Random(2 * kSize, generator);
  const auto formula = [&](const std::vector<double>& in) {
    std::vector<double> out;
    for (size_t row = 0; row < 2; ++row) {
      for (size_t i = 0; i < kSize; ++i) {
        const double gate = in[row * 2 * kSize + i];
        out.push_back(gate / (1 + std::exp(-gate)) * in[row * 2 * kSize + kSize + i]);
      }
    }
    return out;
  };
  const std::vector<double> gradient = NumericGradient(formula, gate_up, dy);
  std::vector<float> y(2 * kSize);
  SwigluForward(gate_up.data(), 2, kSize, y.data());
  ExpectNear(y, formula({gate_up.begin(), gate_up.end()}), 0, "forward");
  SwigluBackward(dy.data(), 2, kSize, gate_up.data());
  ExpectNear(gate_up, gradient, 0, "backward");
}

TEST(LayerKernelsTest, RotaryTurnsPairsAndBack) {
  const std::vector<float> cosines = {1, 1, std::cos(0.5f), std::cos(0.1f)};
  const std::vector<float> sines = {0, 0, std::sin(0.5f), std::sin(0.1f)};
  const RotaryTable table{cosines.data(), sines.data(), 4};
  const std::vector<float> original = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  std::vector<float> x = original;  // One row: two heads of 4 and one number that stays.
  const std::vector<int32_t> positions = {1};
  const RotaryRows rows{x.data(), 1, 9, 2, positions.data()};
  ApplyRotary(table, rows, RotaryDirection::kForward);
  EXPECT_FLOAT_EQ(x[0], 1 * std::cos(0.5f) - 3 * std::sin(0.5f));
  EXPECT_FLOAT_EQ(x[2], 3 * std::cos(0.5f) + 1 * std::sin(0.5f));
  EXPECT_FLOAT_EQ(x[5], 6 * std::cos(0.1f) - 8 * std::sin(0.1f));
  EXPECT_EQ(x[8], 9);
  ApplyRotary(table, rows, RotaryDirection::kBackward);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], original[i], 1e-6);
}

TEST(FastMathTest, ExpIsRightToSinglePrecision) {
  double worst = 0;
  for (int i = -87000; i <= 88000; i += 7) {
    const float x = static_cast<float>(i) / 1000;
    const double expected = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(FastExp(x)) - expected) / expected);
  }
  std::cout << "worst relative error " << worst << " (bar 2e-7)\n";
  EXPECT_LE(worst, 2e-7);
  EXPECT_TRUE(std::isfinite(FastExp(1000)));
  EXPECT_LT(FastExp(-1000), 1e-37f);
  EXPECT_TRUE(std::isnan(FastExp(std::nanf(""))));
}

}  // namespace
}  // namespace traind::cpu
