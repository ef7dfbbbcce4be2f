// What this process takes from the machine.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace traind {

struct ResourceUsage {
  int64_t memory_bytes = 0;       // Resident now.
  int64_t peak_memory_bytes = 0;  // Resident at most so far.
};

ResourceUsage ReadResourceUsage();

// User and system time of all threads of this process so far.
absl::Duration ProcessCpuTime();

}  // namespace traind
