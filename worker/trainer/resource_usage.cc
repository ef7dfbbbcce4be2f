#include "worker/trainer/resource_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "common/os/file.h"

namespace traind {

ResourceUsage ReadResourceUsage() {
  ResourceUsage usage;
  // /proc/self/statm: pages of the address space, then resident pages.
  std::istringstream statm(ReadFile("/proc/self/statm").value_or("0 0"));
  int64_t pages = 0;
  statm >> pages >> pages;
  usage.memory_bytes = pages * ::sysconf(_SC_PAGESIZE);
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) usage.peak_memory_bytes = used.ru_maxrss * 1024;
  // The kernel brings its high-water mark up to date only now and then.
  usage.peak_memory_bytes = std::max(usage.peak_memory_bytes, usage.memory_bytes);
  return usage;
}

absl::Duration ProcessCpuTime() {
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) != 0) return absl::ZeroDuration();
  return absl::DurationFromTimeval(used.ru_utime) + absl::DurationFromTimeval(used.ru_stime);
}

}  // namespace traind
