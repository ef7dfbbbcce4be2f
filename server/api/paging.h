// Page sizes, the same for every list.
#pragma once

#include "absl/status/statusor.h"

namespace traind::api {

// 50 if `page_size` is 0, at most 1000. Errors: INVALID_ARGUMENT (INVALID_FIELD) if it is negative.
absl::StatusOr<int> ResolvePageSize(int page_size);

// INVALID_ARGUMENT (BAD_PAGE_TOKEN).
absl::Status BadPageToken();

}  // namespace traind::api
