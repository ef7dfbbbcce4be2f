// Who is calling.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/api/peer_registry.h"
#include "server/config/config.h"

namespace traind::api {

// A token's name and SHA-256; the token itself is not kept.
struct Token {
  std::string name;
  std::array<unsigned char, 32> hash;
};

// Reads lines of `name:token`; empty lines and those that begin with `#` are skipped. A name
// matches [a-z][a-z0-9-]{0,62}, a token has 16 to 512 printable bytes without spaces. Errors:
// INVALID_ARGUMENT (CONFIG_INVALID) naming file and line, never a token; also if others than the
// owner may access the file.
absl::StatusOr<std::vector<Token>> ReadTokenFile(const std::string& path);

// Thread-safe.
class Authenticator {
 public:
  // `peers` must outlive it. Errors: as ReadTokenFile.
  static absl::StatusOr<Authenticator> Create(const config::v1::TraindConfig& config,
                                              const PeerRegistry* peers);

  // The caller: `user:{uid}` for a connection of the Unix socket, `token:{name}` for TCP with a
  // token, `loopback` for plain TCP. `peer` is gRPC's name of the connection, `authorization` the
  // metadata of that name. Errors: UNAUTHENTICATED (UNAUTHENTICATED).
  absl::StatusOr<std::string> Identify(absl::string_view peer,
                                       absl::string_view authorization) const;

 private:
  enum class Tcp { kOff, kPlain, kToken };

  Authenticator(Tcp tcp, std::vector<Token> tokens, const PeerRegistry* peers)
      : tcp_(tcp), tokens_(std::move(tokens)), peers_(peers) {}

  absl::StatusOr<std::string> IdentifyToken(absl::string_view authorization) const;

  Tcp tcp_;
  std::vector<Token> tokens_;
  const PeerRegistry* peers_;
};

}  // namespace traind::api
