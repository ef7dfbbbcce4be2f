#include "common/os/process_table.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind {
namespace {

// Places in /proc/<pid>/stat after the name in brackets, see proc(5).
constexpr size_t kState = 0;
constexpr size_t kParent = 1;
constexpr size_t kSession = 3;
constexpr size_t kStartTicks = 19;

bool ParseStat(absl::string_view text, ProcessEntry& entry) {
  // The name may hold spaces and brackets, so the fields start behind the last bracket.
  const size_t end_of_name = text.rfind(')');
  if (end_of_name == absl::string_view::npos) return false;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(text.substr(end_of_name + 1), ' ', absl::SkipEmpty());
  if (fields.size() <= kStartTicks) return false;
  entry.zombie = fields[kState] == "Z" || fields[kState] == "X";
  return absl::SimpleAtoi(fields[kParent], &entry.parent) &&
         absl::SimpleAtoi(fields[kSession], &entry.session) &&
         absl::SimpleAtoi(fields[kStartTicks], &entry.start_ticks);
}

bool ReadEntry(pid_t pid, ProcessEntry& entry) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat("/proc/", pid, "/stat"));
  entry.pid = pid;
  return text.ok() && ParseStat(*text, entry);
}

}  // namespace

bool operator==(const ProcessIdentity& a, const ProcessIdentity& b) {
  return a.pid == b.pid && a.start_ticks == b.start_ticks && a.boot_id == b.boot_id;
}

std::string CurrentBootId() {
  const absl::StatusOr<std::string> text = ReadFile("/proc/sys/kernel/random/boot_id");
  return text.ok() ? std::string(absl::StripAsciiWhitespace(*text)) : "";
}

absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid) {
  ProcessEntry entry;
  if (pid <= 0 || !ReadEntry(pid, entry)) {
    return Error(absl::StatusCode::kNotFound, Reason::kUnspecified,
                 absl::StrCat("no process has the id ", pid));
  }
  return ProcessIdentity{pid, entry.start_ticks, CurrentBootId()};
}

std::vector<ProcessEntry> ListProcesses() {
  std::vector<ProcessEntry> entries;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory("/proc");
  if (!names.ok()) return entries;
  for (const std::string& name : *names) {
    pid_t pid = 0;
    ProcessEntry entry;
    if (absl::SimpleAtoi(name, &pid) && ReadEntry(pid, entry)) entries.push_back(entry);
  }
  return entries;
}

std::string ProcessVariable(pid_t pid, absl::string_view name) {
  const absl::StatusOr<std::string> text = ReadFile(absl::StrCat("/proc/", pid, "/environ"));
  if (!text.ok()) return "";
  const std::string prefix = absl::StrCat(name, "=");
  for (const absl::string_view variable : absl::StrSplit(*text, '\0')) {
    if (absl::StartsWith(variable, prefix)) return std::string(variable.substr(prefix.size()));
  }
  return "";
}

std::vector<ProcessIdentity> FindMarkedProcesses(absl::string_view name, absl::string_view value) {
  // Every process that lacks the variable would seem to carry an empty mark.
  if (value.empty()) return {};
  const std::vector<ProcessEntry> all = ListProcesses();
  std::set<pid_t> found;
  for (const ProcessEntry& entry : all) {
    if (ProcessVariable(entry.pid, name) == value) found.insert(entry.pid);
  }
  // A child may have dropped the mark with its environment; its parent gives it away.
  for (size_t before = 0; before != found.size();) {
    before = found.size();
    for (const ProcessEntry& entry : all) {
      if (found.count(entry.parent) > 0) found.insert(entry.pid);
    }
  }
  const std::string boot_id = CurrentBootId();
  std::vector<ProcessIdentity> marked;
  for (const ProcessEntry& entry : all) {
    if (entry.zombie || found.count(entry.pid) == 0) continue;
    marked.push_back({entry.pid, entry.start_ticks, boot_id});
  }
  return marked;
}

}  // namespace traind
