#include "worker/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <vector>

namespace traind {
namespace {

Adapter AdapterOf(const std::vector<float>& gradients) {
  AdapterLayout layout;
  layout.size = static_cast<int64_t>(gradients.size());
  Adapter adapter(layout);
  std::copy(gradients.begin(), gradients.end(), adapter.gradients().begin());
  return adapter;
}

// PyTorch's formula for one number, in double.
struct Reference {
  double p = 0;
  double m = 0;
  double v = 0;

  void Update(double g, const AdamWOptions& o, double lr, int t) {
    p *= 1 - lr * o.weight_decay;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double root = std::sqrt(v) / std::sqrt(1 - std::pow(o.beta2, t));
    p -= lr / (1 - std::pow(o.beta1, t)) * m / (root + o.epsilon);
  }
};

TEST(AdamWTest, FollowsPyTorchsFormulaOver50Updates) {
  AdamWOptions options;
  options.weight_decay = 0.1;
  options.max_grad_norm = 0;
  Adapter adapter = AdapterOf(std::vector<float>(40));
  std::vector<Reference> reference(40);
  for (size_t i = 0; i < 40; ++i) {
    reference[i].p = 0.05 * static_cast<double>(i) - 1;
    adapter.parameters()[i] = static_cast<float>(reference[i].p);
  }
  double worst = 0;
  for (int t = 1; t <= 50; ++t) {
    for (size_t i = 0; i < 40; ++i) {
      const double g = std::sin(0.3 * t + static_cast<double>(i)) * (i % 3 == 0 ? 1e-3 : 1);
      adapter.gradients()[i] = static_cast<float>(g);
      reference[i].Update(g, options, 0.01, t);
    }
    ASSERT_TRUE(AdamWUpdate(adapter, options, 0.01, t).applied);
  }
  for (size_t i = 0; i < 40; ++i) {
    worst =
        std::max(worst, std::abs(static_cast<double>(adapter.parameters()[i]) - reference[i].p));
  }
  std::cout << "worst difference " << worst << " (bar 1e-5)\n";
  EXPECT_LE(worst, 1e-5);
}

// C45: the norm is that of all numbers together, and clipping divides by norm + 1e-6.
TEST(AdamWTest, ClipsByTheGlobalNorm) {
  EXPECT_EQ(GradientNorm({3, 4}), 5);
  const double coefficient = ClipCoefficient(5, 1);
  EXPECT_NEAR(3 * coefficient, 0.599999880000024, 1e-15);
  EXPECT_NEAR(4 * coefficient, 0.799999840000032, 1e-15);
  EXPECT_EQ(ClipCoefficient(0.5, 1), 1);
  EXPECT_EQ(ClipCoefficient(5, 0), 1);
}

TEST(AdamWTest, ReportsTheNormBeforeClippingAndUsesTheClippedGradient) {
  Adapter adapter = AdapterOf({3, 4});
  const UpdateResult result = AdamWUpdate(adapter, {}, 0.1, 1);
  EXPECT_EQ(result.grad_norm, 5);
  EXPECT_NEAR(adapter.exp_avg()[0], 0.1 * 0.6, 1e-6);
  EXPECT_NEAR(adapter.exp_avg()[1], 0.1 * 0.8, 1e-6);
}

// C45: inf times 0 must not reach the weights.
TEST(AdamWTest, ANonFiniteNormChangesNothing) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    Adapter adapter = AdapterOf({1, 0.5f});
    ASSERT_TRUE(AdamWUpdate(adapter, {}, 0.1, 1).applied);
    const std::vector<float> before(adapter.parameters().begin(), adapter.parameters().end());
    const std::vector<float> m(adapter.exp_avg().begin(), adapter.exp_avg().end());
    const std::vector<float> v(adapter.exp_avg_sq().begin(), adapter.exp_avg_sq().end());
    adapter.gradients()[1] = bad;

    const UpdateResult result = AdamWUpdate(adapter, {}, 0.1, 2);

    EXPECT_FALSE(result.applied);
    EXPECT_FALSE(std::isfinite(result.grad_norm));
    EXPECT_EQ(before, std::vector<float>(adapter.parameters().begin(), adapter.parameters().end()));
    EXPECT_EQ(m, std::vector<float>(adapter.exp_avg().begin(), adapter.exp_avg().end()));
    EXPECT_EQ(v, std::vector<float>(adapter.exp_avg_sq().begin(), adapter.exp_avg_sq().end()));
  }
}

TEST(AdamWTest, ARateOfZeroMovesTheMomentsOnly) {
  Adapter adapter = AdapterOf({0.5f});
  adapter.parameters()[0] = 2;
  ASSERT_TRUE(AdamWUpdate(adapter, {}, 0, 1).applied);
  EXPECT_EQ(adapter.parameters()[0], 2);
  EXPECT_NE(adapter.exp_avg()[0], 0);
}

// Larger than one block, and large enough for several threads.
TEST(AdamWTest, TheNormOfManyNumbersDoesNotLosePrecision) {
  const std::vector<float> gradients(1000003, 0.01f);
  const double expected = static_cast<double>(0.01f) * std::sqrt(1000003.0);
  EXPECT_NEAR(GradientNorm(gradients), expected, 1e-9);
}

}  // namespace
}  // namespace traind
