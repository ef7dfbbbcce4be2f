#include "worker/trainer/torch_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "absl/status/statusor.h"

namespace traind {
namespace {

TEST(TorchGuardTest, ResultsPassThrough) {
  EXPECT_EQ(CatchExceptions([] { return absl::StatusOr<int>(7); }).value(), 7);
}

TEST(TorchGuardTest, LackOfMemoryHasAReasonOfItsOwn) {
  const auto result = CatchExceptions([]() -> absl::StatusOr<int> { throw std::bad_alloc(); });
  EXPECT_EQ(ReasonOf(result.status()), Reason::kOutOfMemory);
}

TEST(TorchGuardTest, AnotherExceptionIsADefectWithItsText) {
  const absl::Status status =
      CatchExceptions([]() -> absl::Status { throw std::runtime_error("shapes differ"); });
  EXPECT_EQ(ReasonOf(status), Reason::kBug);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("shapes differ"));
}

}  // namespace
}  // namespace traind
