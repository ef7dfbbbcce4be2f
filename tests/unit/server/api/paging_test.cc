#include "server/api/paging.h"

#include <gtest/gtest.h>

#include "common/status/errors.h"

namespace traind::api {
namespace {

TEST(PagingTest, SizesAreDefaultedAndCapped) {
  EXPECT_EQ(ResolvePageSize(0).value(), 50);
  EXPECT_EQ(ResolvePageSize(1).value(), 1);
  EXPECT_EQ(ResolvePageSize(1000).value(), 1000);
  EXPECT_EQ(ResolvePageSize(1001).value(), 1000);
  EXPECT_EQ(ResolvePageSize(2147483647).value(), 1000);
}

TEST(PagingTest, ANegativeSizeIsAWrongField) {
  const absl::Status status = ResolvePageSize(-1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldViolationsOf(status).at(0).field, "page_size");
}

TEST(PagingTest, ABadTokenHasItsReason) {
  EXPECT_EQ(BadPageToken().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(BadPageToken()), Reason::kBadPageToken);
}

}  // namespace
}  // namespace traind::api
