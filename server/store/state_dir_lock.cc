#include "server/store/state_dir_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::store {
namespace {

absl::Status Locked(const std::string& state_dir, const std::string& path) {
  absl::StatusOr<std::string> contents = ReadFile(path);
  std::string pid = contents.ok() ? *contents : "";
  absl::StripAsciiWhitespace(&pid);
  if (pid.empty()) pid = "unknown";
  return Error(
      absl::StatusCode::kFailedPrecondition, Reason::kStateDirLocked,
      absl::StrCat("the state folder ", state_dir, " is in use by the traind with process id ", pid,
                   "; stop it, or set another state_dir"),
      {{"state_dir", state_dir}, {"pid", pid}});
}

absl::Status WritePid(int descriptor, const std::string& path) {
  const std::string text = absl::StrCat(::getpid(), "\n");
  const bool written =
      ::ftruncate(descriptor, 0) == 0 &&
      ::pwrite(descriptor, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
  if (written) return absl::OkStatus();
  return ErrnoError(errno, Reason::kConfigInvalid, "write", path);
}

}  // namespace

absl::StatusOr<StateDirLock> StateDirLock::Acquire(const std::string& state_dir) {
  TRAIND_RETURN_IF_ERROR(CreateDirectories(state_dir));
  const std::string path = absl::StrCat(state_dir, "/traind.lock");
  // The file stays for ever: a lock on a file that somebody removes would protect nothing.
  StateDirLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.descriptor_ < 0) return ErrnoError(errno, Reason::kConfigInvalid, "open", path);
  if (::flock(lock.descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return Locked(state_dir, path);
    return ErrnoError(errno, Reason::kConfigInvalid, "lock", path);
  }
  TRAIND_RETURN_IF_ERROR(WritePid(lock.descriptor_, path));
  return lock;
}

StateDirLock::StateDirLock(StateDirLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

StateDirLock::~StateDirLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace traind::store
