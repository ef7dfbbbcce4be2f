// Page tokens: opaque to clients, safe against damage and mix-ups.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/job_store.h"

namespace traind::store {

// A hash of every argument of the query but the page's size and token. The same in every process.
uint64_t HashQuery(const JobQuery& query);

std::string EncodePageToken(absl::string_view last_key, uint64_t query_hash);

// The last key of the page before. Errors: INVALID_ARGUMENT (BAD_PAGE_TOKEN) if the token is
// damaged, of another version, or of another query.
absl::StatusOr<std::string> DecodePageToken(absl::string_view token, uint64_t query_hash);

// What DecodePageToken says of a token that is no good.
absl::Status BadPageToken();

}  // namespace traind::store
