// What the machine is and how busy it is, from /proc.
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace traind::api {

struct HostUse {
  std::string processor;  // As /proc/cpuinfo names it; empty if it does not.
  int cores = 0;
  int64_t memory_total_bytes = 0;
  int64_t memory_used_bytes = 0;  // Total without what the kernel calls available.
  double cpu_utilization = 0;     // Share of all cores since the last Read, [0, 1].
};

// Thread-safe. What cannot be read is 0 or empty.
class HostStats {
 public:
  // `proc_dir` is `/proc`, or a copy in tests.
  explicit HostStats(std::string proc_dir = "/proc");

  HostUse Read();

 private:
  struct CpuTime {
    int64_t busy = 0;  // In ticks, since boot.
    int64_t total = 0;
  };

  CpuTime ReadCpuTime() const;
  double Utilization();

  const std::string proc_dir_;
  absl::Mutex mutex_;
  CpuTime last_ ABSL_GUARDED_BY(mutex_);
  double utilization_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace traind::api
