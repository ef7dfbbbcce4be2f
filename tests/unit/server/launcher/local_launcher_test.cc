#include "server/launcher/local_launcher.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LocalLauncherTest : public testing::Test {
 protected:
  LocalLauncherTest() { EXPECT_TRUE(BecomeSubreaper().ok()); }
  ~LocalLauncherTest() override {
    EXPECT_TRUE(MakeLauncher("")->KillAttempt(uid_, absl::ZeroDuration()).ok());
  }

  std::unique_ptr<LocalLauncher> MakeLauncher(const std::string& binary) {
    return std::make_unique<LocalLauncher>(LocalLauncherOptions{binary, temp_.path()});
  }

  // A worker that runs `script`.
  std::string Script(const std::string& script) {
    const std::string path = temp_.File("worker.sh");
    EXPECT_TRUE(WriteFileAtomically(path, absl::StrCat("#!/bin/bash\n", script, "\n")).ok());
    EXPECT_EQ(::chmod(path.c_str(), 0755), 0);
    return path;
  }

  worker::v1::WorkerAssignment Assignment() {
    worker::v1::WorkerAssignment assignment;
    assignment.set_attempt_uid(uid_);
    assignment.set_fencing_token(7);
    assignment.set_attempt_dir(temp_.File("attempts/1"));
    return assignment;
  }

  size_t Processes() { return FindMarkedProcesses(kAttemptMark, uid_).size(); }

  const TempDir temp_;
  const std::string uid_ = absl::StrCat("launcher-", ::getpid(), "-", temp_.path());
};

TEST_F(LocalLauncherTest, GivesTheWorkerItsAssignmentAndKeepsItsOutput) {
  auto launcher = MakeLauncher(Script("echo \"$1\"; cat $2; seq 1 20 >&2; exit 4"));
  absl::StatusOr<Subprocess> worker = launcher->Launch(Assignment());
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE(worker->Wait(absl::Seconds(30)).has_value());
  const std::string log = ReadFile(temp_.File("attempts/1/worker.log")).value();
  EXPECT_THAT(log, HasSubstr("--assignment"));
  EXPECT_THAT(log, HasSubstr("\"fencing_token\": \"7\""));
  EXPECT_EQ(launcher->LastLogLines(temp_.File("attempts/1")), "16\n17\n18\n19\n20");
}

TEST_F(LocalLauncherTest, LastLogLinesOfShortAndMissingLogs) {
  auto launcher = MakeLauncher("");
  EXPECT_EQ(launcher->LastLogLines(temp_.path()), "");
  ASSERT_TRUE(WriteFileAtomically(temp_.File("worker.log"), "one\ntwo\n").ok());
  EXPECT_EQ(launcher->LastLogLines(temp_.path()), "one\ntwo");
  ASSERT_TRUE(WriteFileAtomically(temp_.File("worker.log"), "\n\n").ok());
  EXPECT_EQ(launcher->LastLogLines(temp_.path()), "");
}

TEST_F(LocalLauncherTest, MissingBinaryIsLaunchFailedAndNamed) {
  const absl::Status status = MakeLauncher("/no/traind-worker")->Launch(Assignment()).status();
  EXPECT_EQ(ReasonOf(status), Reason::kLaunchFailed);
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/traind-worker"));
}

// Case: a parent, a child and a grandchild in a new session, all deaf to SIGTERM.
TEST_F(LocalLauncherTest, KillsAWholeFamilyThatIsDeafToSigterm) {
  auto launcher = MakeLauncher(TRAIND_SOURCE_DIR "/tests/support/fake_worker_sigterm_deaf.sh");
  absl::StatusOr<Subprocess> worker = launcher->Launch(Assignment());
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE(WaitUntil([&] { return Processes() >= 4; })) << Processes();
  EXPECT_THAT(launcher->FindAttempts(), ElementsAre(uid_));

  EXPECT_TRUE(launcher->KillAttempt(uid_, absl::Milliseconds(50)).ok());
  EXPECT_EQ(Processes(), 0u);
  EXPECT_THAT(launcher->FindAttempts(), IsEmpty());
  const std::optional<ExitState> state = worker->Wait(absl::Seconds(30));
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->value, SIGKILL);
  // Zombies would be children of ours that wait to be reaped.
  EXPECT_TRUE(WaitUntil([&] {
    launcher->ReapOrphans();
    return ::waitpid(-1, nullptr, WNOHANG) < 0;
  })) << "a zombie is left";
}

TEST_F(LocalLauncherTest, LetsAWorkerLeaveByItselfWithinTheGrace) {
  auto launcher = MakeLauncher(
      Script("trap 'echo saved > $(dirname $2)/saved; exit 0' TERM; while :; do sleep 0.01; done"));
  absl::StatusOr<Subprocess> worker = launcher->Launch(Assignment());
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE(WaitUntil([&] { return Processes() >= 2; }));
  EXPECT_TRUE(launcher->KillAttempt(uid_, absl::Seconds(30)).ok());
  EXPECT_EQ(worker->Wait(absl::Seconds(30))->kind, ExitState::Kind::kExited);
  EXPECT_TRUE(FileExists(temp_.File("attempts/1/saved")));
}

TEST_F(LocalLauncherTest, KillingNobodyIsFine) {
  EXPECT_TRUE(MakeLauncher("")->KillAttempt("nobody", absl::Seconds(30)).ok());
}

TEST_F(LocalLauncherTest, FindsTheWorkerOfAnEarlierDaemonByIdentityOrByMark) {
  auto earlier = MakeLauncher(Script("sleep 600 & wait"));
  absl::StatusOr<Subprocess> worker = earlier->Launch(Assignment());
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE(WaitUntil([&] { return Processes() == 2; }));

  auto launcher = MakeLauncher("");
  absl::StatusOr<Subprocess> by_identity = launcher->Find(uid_, worker->identity());
  ASSERT_TRUE(by_identity.ok()) << by_identity.status();
  absl::StatusOr<Subprocess> by_mark = launcher->Find(uid_, ProcessIdentity{});
  ASSERT_TRUE(by_mark.ok()) << by_mark.status();
  EXPECT_EQ(by_mark->identity().pid, worker->identity().pid);

  EXPECT_TRUE(launcher->KillAttempt(uid_, absl::Seconds(30)).ok());
  EXPECT_EQ(launcher->Find(uid_, worker->identity()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(launcher->Find(uid_, ProcessIdentity{}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(LocalLauncherTest, ReapingOrphansDoesNotStealAnExitCode) {
  auto launcher = MakeLauncher(Script("exit 9"));
  absl::StatusOr<Subprocess> worker = launcher->Launch(Assignment());
  ASSERT_TRUE(worker.ok()) << worker.status();
  ASSERT_TRUE(WaitUntil([&] { return Processes() == 0; }));
  launcher->ReapOrphans();
  const std::optional<ExitState> state = worker->Wait(absl::Seconds(30));
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->value, 9);
}

}  // namespace
}  // namespace traind::launcher
