// Which daemon to talk to.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace traind::client {

// How to reach a daemon.
struct Endpoint {
  std::string target;  // gRPC's: `unix:/path` or `host:port`.
  bool tls = false;
  std::vector<std::string> sockets;  // Looked at, none exists; empty if `target` was named.
};

// What finding an endpoint depends on.
struct EndpointLookup {
  std::string server;                                   // --server; empty if not given.
  bool has_ca = false;                                  // --ca-file was given.
  std::function<std::string(const char*)> environment;  // Empty if not set.
  std::function<bool(const std::string&)> file_exists;
};

// --server, else TRAIND_SERVER, else the first socket that exists of $XDG_RUNTIME_DIR/traind,
// /run/traind, ~/.local/state/traind, /var/lib/traind. TCP is plain on loopback without a CA file,
// else TLS. INVALID_ARGUMENT for an address that is not `unix:PATH` or `HOST:PORT`.
absl::StatusOr<Endpoint> FindEndpoint(const EndpointLookup& lookup);

}  // namespace traind::client
