#include "common/os/fault_point.h"

#ifdef TRAIND_FAULT_POINTS
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "common/status/errors.h"

namespace traind {
namespace {

struct ArmedFault {
  std::string name;
  std::string effect;
  int pass = 1;
};

ArmedFault ReadArmedFault() {
  ArmedFault fault;
  const char* text = std::getenv("TRAIND_FAULT");
  if (text == nullptr) return fault;
  const std::vector<std::string> at = absl::StrSplit(text, '@');
  const std::vector<std::string> parts = absl::StrSplit(at[0], ':');
  if (parts.size() != 2) return fault;
  fault.name = parts[0];
  fault.effect = parts[1];
  if (at.size() > 1 && !absl::SimpleAtoi(at[1], &fault.pass)) fault.pass = 1;
  return fault;
}

}  // namespace

absl::Status FaultPoint(absl::string_view name) {
  static const ArmedFault armed = ReadArmedFault();
  static std::atomic<int> passes{0};
  if (armed.name != name || ++passes != armed.pass) return absl::OkStatus();
  if (armed.effect == "exit") _exit(137);
  return ErrnoError(ENOSPC, Reason::kDiskFull, "write at fault point", name);
}

}  // namespace traind
#endif
