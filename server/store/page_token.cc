#include "server/store/page_token.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "traind/storage/v1/storage.pb.h"

namespace traind::store {
namespace {

constexpr int kVersion = 1;

// FNV-1a: std::hash and absl::Hash may differ from one process to the next, but a token must
// outlive a restart.
uint64_t Fnv1a(absl::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ull;
  }
  return hash;
}

}  // namespace

uint64_t HashQuery(const JobQuery& query) {
  std::vector<int> states(query.states.begin(), query.states.end());
  std::sort(states.begin(), states.end());
  states.erase(std::unique(states.begin(), states.end()), states.end());
  std::string text = "jobs;";
  for (const int state : states) absl::StrAppend(&text, state, ",");
  // Lengths keep two queries apart whose texts run together.
  for (const auto& [key, value] : query.labels) {
    absl::StrAppend(&text, ";", key.size(), ":", key, value.size(), ":", value);
  }
  return Fnv1a(text);
}

std::string EncodePageToken(absl::string_view last_key, uint64_t query_hash) {
  storage::v1::PageToken token;
  token.set_version(kVersion);
  token.set_last_key(std::string(last_key));
  token.set_query_hash(query_hash);
  std::string text;
  absl::WebSafeBase64Escape(token.SerializeAsString(), &text);
  return text;
}

absl::Status BadPageToken() {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kBadPageToken,
               "page_token: is damaged or belongs to another query; send next_page_token of the "
               "page before with the same filter, or leave it out to begin again",
               {{"field", "page_token"}});
}

absl::StatusOr<std::string> DecodePageToken(absl::string_view token, uint64_t query_hash) {
  std::string bytes;
  storage::v1::PageToken decoded;
  if (!absl::WebSafeBase64Unescape(token, &bytes) || !decoded.ParseFromString(bytes) ||
      decoded.version() != kVersion || decoded.query_hash() != query_hash) {
    return BadPageToken();
  }
  return decoded.last_key();
}

}  // namespace traind::store
