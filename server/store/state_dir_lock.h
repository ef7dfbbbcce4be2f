// At most one daemon on one state folder.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace traind::store {

// Holds `<state_dir>/traind.lock` until it is destroyed or the process is gone, however it ends.
// Thread-compatible.
class StateDirLock {
 public:
  // Creates the folder if need be. Errors: FAILED_PRECONDITION (STATE_DIR_LOCKED), with the process
  // id of the holder as `pid` in its metadata; others as of open(2) with CONFIG_INVALID.
  static absl::StatusOr<StateDirLock> Acquire(const std::string& state_dir);

  StateDirLock(StateDirLock&& other) noexcept;
  StateDirLock& operator=(StateDirLock&&) = delete;
  ~StateDirLock();

 private:
  explicit StateDirLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace traind::store
