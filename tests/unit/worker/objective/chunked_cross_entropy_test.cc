#include "worker/objective/chunked_cross_entropy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <vector>

namespace traind {
namespace {

constexpr double kBar = 1e-4;
constexpr int64_t kHidden = 10;
constexpr int64_t kVocab = 23;
constexpr double kEpsilon = 1e-5;
constexpr uint32_t kSeed = 5;

// Random hidden states, head and targets.
class ChunkedCrossEntropyTest : public testing::Test {
 protected:
  void Make(int64_t tokens) {
    std::normal_distribution<float> normal(0, 1);
    const auto fill = [&](std::vector<float>& values, int64_t size) {
      values.resize(static_cast<size_t>(size));
      for (float& value : values) value = normal(generator_);
    };
    fill(x_, tokens * kHidden);
    fill(norm_, kHidden);
    fill(weight_, kVocab * kHidden);
    targets_ = {};
    for (int32_t i = 0; i < tokens; i += 1 + i % 2) {
      targets_.positions.push_back(i);
      targets_.ids.push_back(static_cast<int32_t>(generator_() % kVocab));
    }
  }

  // nll of one position, in double; `x` is its row.
  double Nll(const std::vector<double>& x, int32_t target) const {
    double square_sum = 0;
    for (const double value : x) square_sum += value * value;
    const double scale = 1 / std::sqrt(square_sum / kHidden + kEpsilon);
    double sum = 0;
    double of_target = 0;
    for (int64_t v = 0; v < kVocab; ++v) {
      double logit = 0;
      for (size_t j = 0; j < kHidden; ++j) {
        logit += x[j] * scale * static_cast<double>(norm_[j]) *
                 static_cast<double>(weight_[static_cast<size_t>(v * kHidden) + j]);
      }
      sum += std::exp(logit);
      if (v == target) of_target = logit;
    }
    return std::log(sum) - of_target;
  }

  std::vector<double> Row(int32_t position) const {
    const auto first = x_.begin() + position * kHidden;
    return {first, first + kHidden};
  }

  ChunkedCrossEntropy MakeObjective() {
    ChunkedCrossEntropy objective(
        {{norm_.data(), kHidden, static_cast<float>(kEpsilon)}, weight_.data(), kVocab});
    arena_.BeginMeasuring();
    objective.LayOut(arena_, targets_.size());
    EXPECT_TRUE(arena_.Reserve().ok());
    objective.LayOut(arena_, targets_.size());
    return objective;
  }

  std::mt19937 generator_{kSeed};
  std::vector<float> x_;
  std::vector<float> norm_;
  std::vector<float> weight_;
  SupervisedTargets targets_;
  Arena arena_;
};

// More positions than one chunk holds, and a last chunk that is not full.
TEST_F(ChunkedCrossEntropyTest, LossesEqualTheFormulaAcrossChunks) {
  Make(2400);
  ASSERT_GT(targets_.size(), 2 * 512);
  std::vector<float> dx(x_.size());
  ChunkedCrossEntropy objective = MakeObjective();
  const std::vector<double> evaluated = objective.Evaluate(x_.data(), targets_);
  const std::vector<double> trained = objective.ForwardBackward(x_.data(), targets_, 1, dx.data());
  double worst = 0;
  for (size_t i = 0; i < trained.size(); ++i) {
    const double expected = Nll(Row(targets_.positions[i]), targets_.ids[i]);
    worst = std::max(worst, std::abs(trained[i] - expected));
    EXPECT_NEAR(evaluated[i], trained[i], 1e-6);
  }
  std::cout << "worst difference " << worst << " (bar " << kBar << ", seed " << kSeed << ")\n";
  EXPECT_LE(worst, kBar);
}

TEST_F(ChunkedCrossEntropyTest, GradientsEqualFiniteDifferencesAndAreAdded) {
  Make(40);
  constexpr float kScale = 0.25f;
  std::vector<float> dx(x_.size(), 1.0f);
  MakeObjective().ForwardBackward(x_.data(), targets_, kScale, dx.data());
  double worst = 0;
  size_t next = 0;
  for (int32_t position = 0; position < 40; ++position) {
    const bool trained = next < targets_.positions.size() && targets_.positions[next] == position;
    for (size_t j = 0; j < kHidden; ++j) {
      double expected = 0;
      if (trained) {
        std::vector<double> above = Row(position);
        std::vector<double> below = above;
        above[j] += 1e-5;
        below[j] -= 1e-5;
        expected = static_cast<double>(kScale) *
                   (Nll(above, targets_.ids[next]) - Nll(below, targets_.ids[next])) / 2e-5;
      }
      const double actual =
          static_cast<double>(dx[static_cast<size_t>(position * kHidden) + j]) - 1;
      worst = std::max(worst, std::abs(actual - expected));
    }
    if (trained) ++next;
  }
  std::cout << "worst difference " << worst << " (bar " << kBar << ", seed " << kSeed << ")\n";
  EXPECT_LE(worst, kBar);
}

TEST_F(ChunkedCrossEntropyTest, NoTargetsNoLoss) {
  Make(4);
  targets_ = {};
  EXPECT_TRUE(MakeObjective().Evaluate(x_.data(), targets_).empty());
}

// The buffers are those of one chunk, however many positions are trained.
TEST_F(ChunkedCrossEntropyTest, MemoryStopsGrowingWithTheChunk) {
  Make(3000);
  MakeObjective();
  const int64_t bytes = arena_.capacity_bytes();
  Make(9000);
  MakeObjective();
  EXPECT_EQ(arena_.capacity_bytes(), bytes);
}

}  // namespace
}  // namespace traind
