#include "worker/data/random_permutation.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "tests/support/golden_json.h"

namespace traind {
namespace {

int64_t Checksum(const std::vector<int64_t>& order) {
  constexpr int64_t kModulus = (int64_t{1} << 31) - 1;
  int64_t sum = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    sum = (sum + static_cast<int64_t>(i) * order[i]) % kModulus;
  }
  return sum;
}

// tests/golden/data/make_permutations.py recorded what torch 2.11.0 gives.
TEST(RandomPermutationTest, EqualsTorchRandperm) {
  for (const auto& golden : GoldenJson("data/permutations.json")) {
    const auto n = golden["n"].get<int64_t>();
    const auto seed = golden["seed"].get<uint64_t>();
    SCOPED_TRACE("n " + std::to_string(n) + " seed " + std::to_string(seed));
    const std::vector<int64_t> order = RandomPermutation(n, seed);
    const auto head = golden["head"].get<std::vector<int64_t>>();
    ASSERT_EQ(order.size(), static_cast<size_t>(n));
    EXPECT_TRUE(std::equal(head.begin(), head.end(), order.begin()));
    EXPECT_EQ(Checksum(order), golden["checksum"].get<int64_t>());
  }
}

}  // namespace
}  // namespace traind
