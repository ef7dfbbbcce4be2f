// PyTorch's random order of n things, without PyTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace traind {

// torch.randperm draws otherwise from this n on (UINT32_MAX / 20).
inline constexpr int64_t kMaxPermutationSize = 214748364;

// What `torch.randperm(n, generator=torch.Generator().manual_seed(seed))` gives on the CPU.
// REQUIRES: 0 <= n < kMaxPermutationSize.
std::vector<int64_t> RandomPermutation(int64_t n, uint64_t seed);

}  // namespace traind
