#include "common/os/subprocess.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Duration kLimit = absl::Seconds(30);

SubprocessOptions Shell(const std::string& script) {
  SubprocessOptions options;
  options.argv = {"/bin/bash", "-c", script};
  return options;
}

TEST(SubprocessTest, ReportsTheExitCode) {
  absl::StatusOr<Subprocess> child = Subprocess::Start(Shell("exit 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  const std::optional<ExitState> state = child->Wait(kLimit);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(DescribeExit(*state), "exited with code 3");
  EXPECT_EQ(::waitpid(child->identity().pid, nullptr, WNOHANG), -1) << "the child was not reaped";
}

TEST(SubprocessTest, ReportsTheSignal) {
  absl::StatusOr<Subprocess> child = Subprocess::Start(Shell("sleep 600"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_FALSE(child->Wait(absl::ZeroDuration()).has_value());
  ASSERT_TRUE(child->Signal(SIGKILL).ok());
  const std::optional<ExitState> state = child->Wait(kLimit);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(DescribeExit(*state), "was killed by signal 9 (Killed)");
  EXPECT_TRUE(child->Signal(SIGKILL).ok()) << "signalling a dead process is no error";
}

TEST(SubprocessTest, NamesTheFileThatCannotBeRun) {
  SubprocessOptions options;
  options.argv = {"/no/such/worker"};
  const absl::Status status = Subprocess::Start(options).status();
  EXPECT_EQ(ReasonOf(status), Reason::kLaunchFailed);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/worker"));
}

TEST(SubprocessTest, GivesTheChildItsEnvironmentFolderOutputAndNothingElse) {
  const TempDir temp;
  const int leaked = ::dup(STDERR_FILENO);  // Without close-on-exec, like a careless library's.
  SubprocessOptions options =
      Shell("echo $MARK; pwd; readlink /proc/self/fd/* | wc -l; ps -o sid= -p $$; echo err >&2");
  options.environment = {{"MARK", "m 1"}};
  options.working_directory = temp.path();
  options.output_path = temp.File("log");
  absl::StatusOr<Subprocess> child = Subprocess::Start(options);
  ::close(leaked);
  ASSERT_TRUE(child.ok()) << child.status();
  ASSERT_TRUE(child->Wait(kLimit).has_value());
  const std::vector<std::string> lines = absl::StrSplit(ReadFile(temp.File("log")).value(), '\n');
  ASSERT_THAT(lines, SizeIs(6));
  EXPECT_EQ(lines[0], "m 1");
  EXPECT_EQ(lines[1], temp.path());
  EXPECT_EQ(lines[2], "3") << "stdin, stdout and stderr only";
  EXPECT_THAT(lines[3], HasSubstr(absl::StrCat(child->identity().pid))) << "no session of its own";
  EXPECT_EQ(lines[4], "err");
}

TEST(SubprocessTest, AdoptsAProcessAndSeesItsEnd) {
  absl::StatusOr<Subprocess> child = Subprocess::Start(Shell("sleep 600"));
  ASSERT_TRUE(child.ok()) << child.status();
  absl::StatusOr<Subprocess> adopted = Subprocess::Adopt(child->identity());
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_FALSE(adopted->Wait(absl::ZeroDuration()).has_value());
  ASSERT_TRUE(adopted->Signal(SIGTERM).ok());
  const std::optional<ExitState> state = adopted->Wait(kLimit);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->kind, ExitState::Kind::kUnknown);
  EXPECT_EQ(child->Wait(kLimit)->value, SIGTERM);
}

TEST(SubprocessTest, DoesNotAdoptAnotherProcessWithTheSameId) {
  absl::StatusOr<Subprocess> child = Subprocess::Start(Shell("sleep 600"));
  ASSERT_TRUE(child.ok()) << child.status();
  ProcessIdentity earlier = child->identity();
  earlier.start_ticks -= 1;
  EXPECT_EQ(Subprocess::Adopt(earlier).status().code(), absl::StatusCode::kNotFound);
  ProcessIdentity other_boot = child->identity();
  other_boot.boot_id = "another";
  EXPECT_EQ(Subprocess::Adopt(other_boot).status().code(), absl::StatusCode::kNotFound);
  const ProcessIdentity identity = child->identity();
  ASSERT_TRUE(child->Signal(SIGKILL).ok());
  ASSERT_TRUE(child->Wait(kLimit).has_value());
  EXPECT_EQ(Subprocess::Adopt(identity).status().code(), absl::StatusCode::kNotFound);
}

TEST(ProcessTableTest, FindsMarkedProcessesAndTheirDescendantsInOtherSessions) {
  SubprocessOptions options = Shell("env -i setsid sleep 600 & wait");
  const std::string mark = absl::StrCat("find-", ::getpid());
  options.environment = {{"TRAIND_TEST_MARK", mark}};
  absl::StatusOr<Subprocess> child = Subprocess::Start(options);
  ASSERT_TRUE(child.ok()) << child.status();
  const auto find = [&] { return FindMarkedProcesses("TRAIND_TEST_MARK", mark); };
  EXPECT_TRUE(WaitUntil([&] { return find().size() == 2; })) << find().size();
  for (const ProcessIdentity& identity : find()) {
    absl::StatusOr<Subprocess> found = Subprocess::Adopt(identity);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->Signal(SIGKILL).ok());
  }
  ASSERT_TRUE(child->Wait(kLimit).has_value());
  EXPECT_TRUE(WaitUntil([&] { return find().empty(); }));
}

TEST(ProcessTableTest, AnEmptyMarkMarksNobody) {
  EXPECT_THAT(FindMarkedProcesses("TRAIND_TEST_MARK", ""), IsEmpty());
}

TEST(SubreaperTest, ReapsOrphansButLeavesHeldChildren) {
  ASSERT_TRUE(BecomeSubreaper().ok());
  absl::StatusOr<Subprocess> held = Subprocess::Start(Shell("exit 5"));
  absl::StatusOr<Subprocess> parent = Subprocess::Start(Shell("(exec sleep 0.05) & exit 0"));
  ASSERT_TRUE(held.ok() && parent.ok());
  ASSERT_TRUE(parent->Wait(kLimit).has_value());
  EXPECT_TRUE(WaitUntil([&] { return ReapOrphans({held->identity().pid}) == 1; }));
  const std::optional<ExitState> state = held->Wait(kLimit);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->value, 5);
}

}  // namespace
}  // namespace traind
