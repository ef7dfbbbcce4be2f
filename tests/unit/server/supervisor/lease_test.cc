#include "server/supervisor/lease.h"

#include "gtest/gtest.h"

namespace traind::supervisor {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

TEST(LeaseTest, GivesTheFirstWordMoreTimeThanTheOthers) {
  Lease lease(kStart, absl::Seconds(60), absl::Seconds(30));
  EXPECT_FALSE(lease.Expired(kStart + absl::Seconds(59)));
  EXPECT_TRUE(lease.Expired(kStart + absl::Seconds(60)));
  lease.Renew(kStart + absl::Seconds(10));
  EXPECT_FALSE(lease.Expired(kStart + absl::Seconds(39)));
  EXPECT_TRUE(lease.Expired(kStart + absl::Seconds(40)));
}

TEST(LeaseTest, KnowsItsAge) {
  Lease lease(kStart, absl::Seconds(60), absl::Seconds(30));
  EXPECT_EQ(lease.Age(kStart + absl::Seconds(7)), absl::Seconds(7));
  lease.Renew(kStart + absl::Seconds(7));
  EXPECT_EQ(lease.Age(kStart + absl::Seconds(9)), absl::Seconds(2));
}

}  // namespace
}  // namespace traind::supervisor
