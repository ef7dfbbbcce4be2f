#include "client/rpc/endpoint.h"

#include <sys/un.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

absl::Status BadAddress(absl::string_view address, absl::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kUnspecified,
               absl::StrCat("the server address `", address, "` ", why,
                            "; write unix:/path/to/socket or host:port"),
               {{"server", address}});
}

std::vector<std::string> DefaultSockets(const EndpointLookup& lookup) {
  std::vector<std::string> sockets;
  const std::string runtime = lookup.environment("XDG_RUNTIME_DIR");
  const std::string home = lookup.environment("HOME");
  if (!runtime.empty()) sockets.push_back(absl::StrCat(runtime, "/traind/traind.sock"));
  sockets.push_back("/run/traind/traind.sock");
  if (!home.empty()) sockets.push_back(absl::StrCat(home, "/.local/state/traind/traind.sock"));
  sockets.push_back("/var/lib/traind/traind.sock");
  return sockets;
}

bool IsLoopback(absl::string_view host) {
  const bool digits = host.find_first_not_of("0123456789.") == absl::string_view::npos;
  return host == "localhost" || host == "[::1]" || (digits && absl::StartsWith(host, "127."));
}

absl::StatusOr<Endpoint> UnixEndpoint(absl::string_view address) {
  absl::string_view path = address;
  absl::ConsumePrefix(&path, "unix:");
  absl::ConsumePrefix(&path, "//");
  if (path.empty()) return BadAddress(address, "has no path");
  if (path.size() > kMaxSocketPath) {
    return BadAddress(address, absl::StrCat("has a path of more than ", kMaxSocketPath, " bytes"));
  }
  return Endpoint{absl::StrCat("unix:", path), false, {}};
}

absl::StatusOr<Endpoint> ParseAddress(const std::string& address, bool has_ca) {
  if (absl::StartsWith(address, "unix:") || absl::StartsWith(address, "/")) {
    return UnixEndpoint(address);
  }
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return BadAddress(address, "has no port");
  }
  return Endpoint{address, has_ca || !IsLoopback(address.substr(0, colon)), {}};
}

}  // namespace

absl::StatusOr<Endpoint> FindEndpoint(const EndpointLookup& lookup) {
  if (!lookup.server.empty()) return ParseAddress(lookup.server, lookup.has_ca);
  const std::string from_environment = lookup.environment("TRAIND_SERVER");
  if (!from_environment.empty()) return ParseAddress(from_environment, lookup.has_ca);
  const std::vector<std::string> sockets = DefaultSockets(lookup);
  for (const std::string& socket : sockets) {
    if (lookup.file_exists(socket)) return Endpoint{absl::StrCat("unix:", socket), false, {}};
  }
  return Endpoint{absl::StrCat("unix:", sockets.front()), false, sockets};
}

}  // namespace traind::client
