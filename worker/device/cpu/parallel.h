// When work is worth waking the other threads.
#pragma once

#include <cstdint>

namespace traind::cpu {

// Starting and joining a team costs some microseconds, and a whole time slice if another process
// holds a core. Below this many multiply-adds one thread is faster.
inline constexpr int64_t kParallelOperations = int64_t{1} << 18;

inline bool WorthThreads(int64_t operations) { return operations >= kParallelOperations; }

}  // namespace traind::cpu
