#include "client/cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace traind::client {
namespace {

using ::testing::HasSubstr;

TEST(CommandTest, JobsMayBeNamedByTheirId) {
  EXPECT_EQ(JobNameArgument("run").value(), "jobs/run");
  EXPECT_EQ(JobNameArgument("jobs/run").value(), "jobs/run");
  for (const char* wrong : {"", "Run", "jobs/", "jobs/a/b", "a b"}) {
    EXPECT_EQ(JobNameArgument(wrong).status().code(), absl::StatusCode::kInvalidArgument) << wrong;
  }
}

TEST(CommandTest, CheckpointsMayBeNamedShortly) {
  EXPECT_EQ(CheckpointNameArgument("run").value(), "jobs/run/checkpoints/adapter");
  EXPECT_EQ(CheckpointNameArgument("jobs/run").value(), "jobs/run/checkpoints/adapter");
  EXPECT_EQ(CheckpointNameArgument("run/25").value(), "jobs/run/checkpoints/25");
  EXPECT_EQ(CheckpointNameArgument("jobs/run/checkpoints/25").value(), "jobs/run/checkpoints/25");
  EXPECT_FALSE(CheckpointNameArgument("run/../x").ok());
  EXPECT_FALSE(CheckpointNameArgument("").ok());
}

TEST(ExitCodeTest, TheHelpNamesEveryCode) {
  const std::string help = ExitCodeHelp();
  for (const int code : {0, 1, 2, 3, 4, 5, 8, 9}) {
    EXPECT_THAT(help, HasSubstr(absl::StrCat("\n  ", code, "  "))) << help;
  }
}

TEST(ExitCodeTest, FollowsTheError) {
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("")), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(absl::CancelledError("")), ExitCode::kCancelled);
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("")), ExitCode::kNotPermitted);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), ExitCode::kNotPermitted);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), ExitCode::kNotFound);
}

TEST(ExitCodeTest, AStateThatIsNotKnownIsPending) {
  EXPECT_EQ(ExitCodeOf(v1::Job::SUCCEEDED), ExitCode::kOk);
  EXPECT_EQ(ExitCodeOf(v1::Job::FAILED), ExitCode::kJobFailed);
  EXPECT_EQ(ExitCodeOf(v1::Job::CANCELLED), ExitCode::kCancelled);
  EXPECT_EQ(ExitCodeOf(v1::Job::PAUSED), ExitCode::kPending);
  EXPECT_EQ(ExitCodeOf(static_cast<v1::Job::State>(77)), ExitCode::kPending);
}

}  // namespace
}  // namespace traind::client
