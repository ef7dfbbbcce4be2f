// What this process uses of the machine.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace traind {

struct MemoryUsage {
  int64_t resident_bytes = 0;       // RSS now.
  int64_t peak_resident_bytes = 0;  // Largest RSS since the process began.
};

// From /proc/self/status; zeros where that cannot be read.
MemoryUsage ReadMemoryUsage();

// User and system time of all threads since the process began.
absl::Duration CpuTimeUsed();

}  // namespace traind
