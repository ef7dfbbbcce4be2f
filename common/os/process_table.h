// Who runs on this machine, read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace traind {

// Names one process for ever: a process id alone is used again.
struct ProcessIdentity {
  pid_t pid = 0;
  int64_t start_ticks = 0;  // Clock ticks from boot to its start.
  std::string boot_id;      // The boot that both belong to.
};

bool operator==(const ProcessIdentity& a, const ProcessIdentity& b);

// The boot that this machine is in. Empty if the kernel does not say.
std::string CurrentBootId();

// Who has the id now; a zombie still has it. NOT_FOUND if nobody has.
absl::StatusOr<ProcessIdentity> IdentifyProcess(pid_t pid);

// A line of the process table.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  int64_t start_ticks = 0;
  bool zombie = false;
};

// Every process, at about one moment.
std::vector<ProcessEntry> ListProcesses();

// The value of a variable in the environment that the process was started with; empty if it has
// none, is gone, is a zombie or belongs to another user.
std::string ProcessVariable(pid_t pid, absl::string_view name);

// Every process, zombies excepted, that was started with `name`=`value`, and all its descendants.
// None for an empty value.
std::vector<ProcessIdentity> FindMarkedProcesses(absl::string_view name, absl::string_view value);

}  // namespace traind
