#include "server/api/peer_registry.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace traind::api {

bool PeerRegistry::Claim(int descriptor, uid_t uid) {
  return users_.try_emplace(descriptor, uid).first->second == uid;
}

int PeerRegistry::Register(int descriptor, uid_t uid) {
  absl::MutexLock lock(&mutex_);
  while (descriptor >= 0 && !Claim(descriptor, uid)) {
    const int moved = fcntl(descriptor, F_DUPFD_CLOEXEC, descriptor + 1);
    close(descriptor);
    descriptor = moved;
  }
  return descriptor;
}

std::optional<uid_t> PeerRegistry::UserOf(absl::string_view peer) const {
  int descriptor = -1;
  if (!absl::ConsumePrefix(&peer, "fd:") || !absl::SimpleAtoi(peer, &descriptor)) {
    return std::nullopt;
  }
  absl::MutexLock lock(&mutex_);
  const auto found = users_.find(descriptor);
  if (found == users_.end()) return std::nullopt;
  return found->second;
}

}  // namespace traind::api
