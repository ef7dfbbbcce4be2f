#include "worker/device/process_usage.h"

#include <sys/resource.h>

#include <fstream>
#include <limits>
#include <string>

namespace traind {

MemoryUsage ReadMemoryUsage() {
  MemoryUsage usage;
  std::ifstream status("/proc/self/status");
  std::string key;
  while (status >> key) {
    int64_t kib = 0;
    if (key == "VmRSS:" && status >> kib) usage.resident_bytes = kib * 1024;
    if (key == "VmHWM:" && status >> kib) usage.peak_resident_bytes = kib * 1024;
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return usage;
}

absl::Duration CpuTimeUsed() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

}  // namespace traind
