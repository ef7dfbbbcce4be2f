#include "worker/trainer/cpu_info.h"

#include <sched.h>

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind {

std::vector<std::string> CpuFeatures() {
  std::vector<std::string> features;
  // __builtin_cpu_supports takes literals only.
  if (__builtin_cpu_supports("avx2")) features.push_back("avx2");
  if (__builtin_cpu_supports("fma")) features.push_back("fma");
  if (__builtin_cpu_supports("avx512f")) features.push_back("avx512f");
  if (__builtin_cpu_supports("avx512vnni")) features.push_back("avx512vnni");
  if (__builtin_cpu_supports("avx512bf16")) features.push_back("avx512bf16");
  return features;
}

absl::Status CheckCpu(const std::vector<std::string>& features) {
  std::vector<std::string> missing;
  for (const char* needed : {"avx2", "fma"}) {
    if (std::find(features.begin(), features.end(), needed) == features.end()) {
      missing.push_back(needed);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  const std::string list = absl::StrJoin(missing, ", ");
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kLaunchFailed,
               absl::StrCat("this processor lacks ", list,
                            "; training needs an x86-64 processor with AVX2 and FMA (Intel since "
                            "2013, AMD since 2015)"),
               {{"missing", list}});
}

int PhysicalCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  // Hyper-threads of one core have the same list of siblings.
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const auto siblings = ReadFile(
        absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    cores.insert(siblings.ok() ? *siblings : absl::StrCat(cpu));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

}  // namespace traind
