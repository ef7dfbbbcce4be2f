#include "worker/device/cpu/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace traind::cpu {
namespace {

constexpr uint32_t kSeed = 3;

struct AttentionCase {
  std::string name;
  AttentionShape shape;
  std::vector<int32_t> row_offsets;
};

// The formula in double, one query at a time.
class NaiveAttention {
 public:
  NaiveAttention(const AttentionCase& c, const std::vector<float>& qkv)
      : shape_(c.shape), offsets_(c.row_offsets), qkv_(qkv.begin(), qkv.end()) {}

  // out, and adds the gradients of sum(out * d_out) to d_qkv if that is not null.
  std::vector<double> Run(const std::vector<float>& d_out, std::vector<double>* d_qkv) const {
    std::vector<double> out(d_out.size());
    for (size_t row = 0; row + 1 < offsets_.size(); ++row) {
      for (int64_t i = offsets_[row]; i < offsets_[row + 1]; ++i) {
        for (int64_t head = 0; head < shape_.query_heads; ++head) {
          Query(offsets_[row], i, head, d_out, out, d_qkv);
        }
      }
    }
    return out;
  }

 private:
  size_t Index(int64_t token, int64_t column) const {
    return static_cast<size_t>(token * shape_.qkv_size() + column);
  }

  void Query(int64_t first, int64_t i, int64_t head, const std::vector<float>& d_out,
             std::vector<double>& out, std::vector<double>* d_qkv) const {
    const int64_t dim = shape_.head_dim;
    const int64_t kv = head / (shape_.query_heads / shape_.key_value_heads);
    const int64_t key = shape_.query_size() + kv * dim;
    const int64_t value = key + shape_.key_value_size();
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    const size_t out_at = static_cast<size_t>(i * shape_.query_size() + head * dim);
    std::vector<double> p;
    double sum = 0;
    for (int64_t j = first; j <= i; ++j) {
      double score = 0;
      for (int64_t d = 0; d < dim; ++d) {
        score += qkv_[Index(i, head * dim + d)] * qkv_[Index(j, key + d)];
      }
      p.push_back(std::exp(score * scale));
      sum += p.back();
    }
    for (double& probability : p) probability /= sum;
    double mean = 0;
    std::vector<double> dp(p.size());
    for (size_t j = 0; j < p.size(); ++j) {
      for (int64_t d = 0; d < dim; ++d) {
        const size_t at = out_at + static_cast<size_t>(d);
        const double v = qkv_[Index(first + static_cast<int64_t>(j), value + d)];
        out[at] += p[j] * v;
        dp[j] += static_cast<double>(d_out[at]) * v;
      }
      mean += p[j] * dp[j];
    }
    if (d_qkv == nullptr) return;
    for (size_t j = 0; j < p.size(); ++j) {
      const int64_t token = first + static_cast<int64_t>(j);
      const double ds = p[j] * (dp[j] - mean) * scale;
      for (int64_t d = 0; d < dim; ++d) {
        (*d_qkv)[Index(i, head * dim + d)] += ds * qkv_[Index(token, key + d)];
        (*d_qkv)[Index(token, key + d)] += ds * qkv_[Index(i, head * dim + d)];
        (*d_qkv)[Index(token, value + d)] +=
            p[j] * static_cast<double>(d_out[out_at + static_cast<size_t>(d)]);
      }
    }
  }

  AttentionShape shape_;
  std::vector<int32_t> offsets_;
  std::vector<double> qkv_;
};

std::vector<float> Random(int64_t size, std::mt19937& generator) {
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(static_cast<size_t>(size));
  for (float& value : values) value = normal(generator);
  return values;
}

double Worst(const std::vector<float>& actual, const std::vector<double>& expected) {
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(actual[i]) - expected[i]));
  }
  return worst;
}

class AttentionTest : public testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionTest, ForwardAndBackwardEqualTheFormula) {
  const AttentionCase& c = GetParam();
  std::mt19937 generator(kSeed);
  const int64_t tokens = c.row_offsets.back();
  const std::vector<float> qkv = Random(tokens * c.shape.qkv_size(), generator);
  const std::vector<float> d_out = Random(tokens * c.shape.query_size(), generator);
  std::vector<float> out(d_out.size());
  std::vector<float> lse(static_cast<size_t>(tokens * c.shape.query_heads));
  std::vector<float> d_qkv(qkv.size(), 99.0f);  // Backward has to overwrite all of it.

  AttentionForward(c.shape, c.row_offsets, qkv.data(), out.data(), lse.data());
  AttentionBackward(c.shape, c.row_offsets, {qkv.data(), out.data(), lse.data()}, d_out.data(),
                    d_qkv.data());

  std::vector<double> expected_d_qkv(qkv.size());
  const std::vector<double> expected = NaiveAttention(c, qkv).Run(d_out, &expected_d_qkv);
  const double forward = Worst(out, expected);
  const double backward = Worst(d_qkv, expected_d_qkv);
  std::cout << "worst difference forward " << forward << " (bar 1e-5), backward " << backward
            << " (bar 1e-4, seed " << kSeed << ")\n";
  EXPECT_LE(forward, 1e-5);
  EXPECT_LE(backward, 1e-4);
}

TEST_P(AttentionTest, TheCachedFormGivesTheSame) {
  const AttentionCase& c = GetParam();
  std::mt19937 generator(kSeed);
  const int64_t tokens = c.row_offsets[1];  // The first row alone.
  const std::vector<float> qkv = Random(tokens * c.shape.qkv_size(), generator);
  std::vector<float> keys;
  std::vector<float> values;
  for (int64_t i = 0; i < tokens; ++i) {
    const auto key = qkv.begin() + i * c.shape.qkv_size() + c.shape.query_size();
    keys.insert(keys.end(), key, key + c.shape.key_value_size());
    values.insert(values.end(), key + c.shape.key_value_size(), key + 2 * c.shape.key_value_size());
  }
  std::vector<float> out(static_cast<size_t>(tokens * c.shape.query_size()));
  const int64_t prompt = tokens / 2;
  const KeyValueCache cache{keys.data(), values.data()};
  CachedAttention(c.shape, {qkv.data(), prompt, 0}, cache, out.data());
  CachedAttention(c.shape, {qkv.data() + prompt * c.shape.qkv_size(), tokens - prompt, prompt},
                  cache, out.data() + prompt * c.shape.query_size());

  AttentionCase first = c;
  first.row_offsets = {0, static_cast<int32_t>(tokens)};
  const std::vector<double> expected = NaiveAttention(first, qkv).Run(out, nullptr);
  EXPECT_LE(Worst(out, expected), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, AttentionTest,
                         testing::Values(AttentionCase{"OneToken", {1, 1, 4}, {0, 1}},
                                         AttentionCase{"OddHeadDim", {6, 2, 5}, {0, 7, 8, 31}},
                                         AttentionCase{"BlocksOf48", {4, 2, 16}, {0, 48, 97, 241}},
                                         AttentionCase{"SmolLm2", {9, 3, 64}, {0, 131, 140, 200}}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace traind::cpu
