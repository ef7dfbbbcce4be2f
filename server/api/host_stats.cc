#include "server/api/host_stats.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"

namespace traind::api {
namespace {

std::string Contents(const std::string& path) { return ReadFile(path).value_or(""); }

// The text behind `key :` on the first line that begins with `key`.
std::string ValueOf(const std::string& text, absl::string_view key) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, key)) continue;
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    return std::string(absl::StripAsciiWhitespace(parts.second));
  }
  return "";
}

// `MemTotal:  16384 kB` in bytes.
int64_t KilobytesOf(const std::string& meminfo, absl::string_view key) {
  const std::string value = ValueOf(meminfo, key);
  int64_t kilobytes = 0;
  if (!absl::SimpleAtoi(value.substr(0, value.find(' ')), &kilobytes)) return 0;
  return kilobytes * 1024;
}

int CountCores(const std::string& cpuinfo) {
  int cores = 0;
  for (absl::string_view line : absl::StrSplit(cpuinfo, '\n')) {
    if (absl::StartsWith(line, "processor")) ++cores;
  }
  return cores;
}

}  // namespace

HostStats::HostStats(std::string proc_dir) : proc_dir_(std::move(proc_dir)) {
  absl::MutexLock lock(&mutex_);
  last_ = ReadCpuTime();
}

HostStats::CpuTime HostStats::ReadCpuTime() const {
  const std::string text = Contents(absl::StrCat(proc_dir_, "/stat"));
  const std::string first_line = text.substr(0, text.find('\n'));
  const std::vector<absl::string_view> fields = absl::StrSplit(first_line, ' ', absl::SkipEmpty());
  CpuTime time;
  // user nice system idle iowait irq softirq steal; guest time is part of user.
  constexpr size_t kIdle = 4, kIoWait = 5, kEnd = 9;
  for (size_t i = 1; i < std::min(fields.size(), kEnd); ++i) {
    int64_t ticks = 0;
    if (!absl::SimpleAtoi(fields[i], &ticks)) return {};
    time.total += ticks;
    if (i != kIdle && i != kIoWait) time.busy += ticks;
  }
  return time;
}

double HostStats::Utilization() {
  absl::MutexLock lock(&mutex_);
  const CpuTime now = ReadCpuTime();
  const int64_t total = now.total - last_.total;
  // Two calls within a tick: the last answer still holds.
  if (total <= 0) return utilization_;
  utilization_ =
      std::clamp(static_cast<double>(now.busy - last_.busy) / static_cast<double>(total), 0.0, 1.0);
  last_ = now;
  return utilization_;
}

HostUse HostStats::Read() {
  const std::string cpuinfo = Contents(absl::StrCat(proc_dir_, "/cpuinfo"));
  const std::string meminfo = Contents(absl::StrCat(proc_dir_, "/meminfo"));
  HostUse use;
  use.processor = ValueOf(cpuinfo, "model name");
  use.cores = CountCores(cpuinfo);
  use.memory_total_bytes = KilobytesOf(meminfo, "MemTotal");
  use.memory_used_bytes = use.memory_total_bytes - KilobytesOf(meminfo, "MemAvailable");
  use.cpu_utilization = Utilization();
  return use;
}

}  // namespace traind::api
