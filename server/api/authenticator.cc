#include "server/api/authenticator.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/names/resource_name.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::api {
namespace {

constexpr size_t kMinTokenBytes = 16;
constexpr size_t kMaxTokenBytes = 512;
constexpr size_t kBearerBytes = 7;  // "Bearer "

std::array<unsigned char, 32> HashOf(absl::string_view token) {
  std::array<unsigned char, 32> hash;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

absl::Status Invalid(const std::string& path, absl::string_view text) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid, absl::StrCat(path, text),
               {{"path", path}});
}

absl::Status Unauthenticated(absl::string_view text) {
  return Error(absl::StatusCode::kUnauthenticated, Reason::kUnauthenticated, text);
}

bool IsToken(absl::string_view text) {
  return text.size() >= kMinTokenBytes && text.size() <= kMaxTokenBytes &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

// Why the line is no token; empty if it is one.
absl::string_view CheckLine(absl::string_view name, absl::string_view token) {
  if (!IsJobId(name)) return "a name must match [a-z][a-z0-9-]{0,62}, then `:` and the token";
  if (!IsToken(token)) return "a token must have 16 to 512 printable bytes without spaces";
  return "";
}

}  // namespace

absl::StatusOr<std::vector<Token>> ReadTokenFile(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return Invalid(path, " is open to other users; run chmod 600 on it");
  }
  TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, Reason::kConfigInvalid));
  std::vector<Token> tokens;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    const size_t colon = line.find(':');
    const absl::string_view name = line.substr(0, colon);
    const absl::string_view token = colon == line.npos ? "" : line.substr(colon + 1);
    const absl::string_view wrong = CheckLine(name, token);
    if (!wrong.empty()) return Invalid(path, absl::StrCat(":", number, ": ", wrong));
    tokens.push_back({std::string(name), HashOf(token)});
  }
  if (tokens.empty()) return Invalid(path, " holds no token; add a line `name:token`");
  return tokens;
}

absl::StatusOr<Authenticator> Authenticator::Create(const config::v1::TraindConfig& config,
                                                    const PeerRegistry* peers) {
  if (!config.has_listen_tcp()) return Authenticator(Tcp::kOff, {}, peers);
  if (config.listen_tcp().insecure_loopback()) return Authenticator(Tcp::kPlain, {}, peers);
  TRAIND_ASSIGN_OR_RETURN(std::vector<Token> tokens,
                          ReadTokenFile(config.listen_tcp().token_file()));
  return Authenticator(Tcp::kToken, std::move(tokens), peers);
}

absl::StatusOr<std::string> Authenticator::Identify(absl::string_view peer,
                                                    absl::string_view authorization) const {
  if (absl::StartsWith(peer, "fd:")) {
    const std::optional<uid_t> user = peers_->UserOf(peer);
    if (user.has_value()) return absl::StrCat("user:", *user);
    return Unauthenticated("the connection's user is not known; connect again");
  }
  switch (tcp_) {
    case Tcp::kOff:
      return Unauthenticated("the daemon does not listen on TCP; use its Unix socket");
    case Tcp::kPlain:
      return std::string("loopback");
    case Tcp::kToken:
      return IdentifyToken(authorization);
  }
  return Unauthenticated("unknown kind of connection");
}

absl::StatusOr<std::string> Authenticator::IdentifyToken(absl::string_view authorization) const {
  if (authorization.empty()) {
    return Unauthenticated("a token is needed: send `authorization: Bearer <token>`");
  }
  if (!absl::StartsWithIgnoreCase(authorization, "Bearer ")) {
    return Unauthenticated("the authorization is no bearer token: send `Bearer <token>`");
  }
  const auto hash = HashOf(absl::StripAsciiWhitespace(authorization.substr(kBearerBytes)));
  // Every token is compared, in constant time, so that the time tells nothing.
  const Token* found = nullptr;
  for (const Token& token : tokens_) {
    if (CRYPTO_memcmp(token.hash.data(), hash.data(), hash.size()) == 0) found = &token;
  }
  if (found == nullptr) return Unauthenticated("the token is not known; ask the operator for one");
  return absl::StrCat("token:", found->name);
}

}  // namespace traind::api
