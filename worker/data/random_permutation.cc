#include "worker/data/random_permutation.h"

#include <numeric>
#include <random>
#include <utility>

namespace traind {

std::vector<int64_t> RandomPermutation(int64_t n, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  // PyTorch's CPU generator is the standard's mt19937, of whose seed it takes the low 32 bits.
  std::mt19937 generator(static_cast<uint32_t>(seed));
  for (int64_t i = 0; i + 1 < n; ++i) {
    const int64_t offset = static_cast<int64_t>(generator()) % (n - i);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(i + offset)]);
  }
  return order;
}

}  // namespace traind
