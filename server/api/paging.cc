#include "server/api/paging.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::api {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

}  // namespace

absl::StatusOr<int> ResolvePageSize(int page_size) {
  if (page_size < 0) {
    return FieldErrors(
        {{"page_size", absl::StrCat("must be in [0, ", kMaxPageSize, "]; got ", page_size)}});
  }
  return page_size == 0 ? kDefaultPageSize : std::min(page_size, kMaxPageSize);
}

absl::Status BadPageToken() {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kBadPageToken,
               "the page token is damaged or belongs to another list; begin without one");
}

}  // namespace traind::api
