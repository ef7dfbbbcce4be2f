// Which user is behind a connection of the Unix socket.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace traind::api {

// gRPC names a connection that we accepted by its descriptor, `fd:12`, and the system gives that
// number to another connection as soon as this one is closed, while its last call may still run. So
// a number belongs to one user for ever: a connection of another user is moved to a number that is
// free or its user's own, and a name always tells the right user. Thread-safe.
class PeerRegistry {
 public:
  // Takes `descriptor`, a connection of `uid`, and returns the descriptor to use in its place. -1,
  // and the connection is closed, if there is no suitable number left.
  int Register(int descriptor, uid_t uid);

  // The user of `peer` (`fd:12`).
  std::optional<uid_t> UserOf(absl::string_view peer) const;

 private:
  bool Claim(int descriptor, uid_t uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int, uid_t> users_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind::api
