#include "server/supervisor/lease_supervisor.h"

#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/launcher/local_launcher.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind::supervisor {
namespace {

using testing::HasSubstr;

constexpr char kFakeWorker[] = TRAIND_FAKE_WORKER_BINARY;

// Keeps what the supervisor says. Thread-safe.
class FakeReports : public WorkerReports {
 public:
  absl::StatusOr<int64_t> OnHello(const worker::v1::Hello& hello) override {
    absl::MutexLock lock(&mutex_);
    ++hellos_;
    if (hello.fencing_token() != 1) {
      return Error(absl::StatusCode::kFailedPrecondition, Reason::kAttemptFenced, "old token");
    }
    return static_cast<int64_t>(reports_.size());
  }
  absl::StatusOr<int64_t> OnReports(const std::string&, int64_t,
                                    const std::vector<worker::v1::Report>& reports) override {
    absl::MutexLock lock(&mutex_);
    if (refusals_ > 0) {
      --refusals_;
      return Error(absl::StatusCode::kUnavailable, Reason::kStoreBusy, "busy");
    }
    for (const worker::v1::Report& report : reports) {
      if (report.number() <= static_cast<int64_t>(reports_.size())) continue;
      EXPECT_EQ(report.number(), static_cast<int64_t>(reports_.size()) + 1) << "a gap";
      EXPECT_FALSE(gone_.has_value()) << "a report after the end";
      reports_.push_back(report);
    }
    return static_cast<int64_t>(reports_.size());
  }
  void OnWorkerGone(const std::string&, const absl::Status& why) override {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(gone_.has_value()) << "the end was reported twice";
    gone_ = why;
  }

  void RefuseNext(int count) {
    absl::MutexLock lock(&mutex_);
    refusals_ = count;
  }
  int hellos() {
    absl::MutexLock lock(&mutex_);
    return hellos_;
  }
  std::vector<worker::v1::Report> reports() {
    absl::MutexLock lock(&mutex_);
    return reports_;
  }
  std::optional<absl::Status> gone() {
    absl::MutexLock lock(&mutex_);
    return gone_;
  }

 private:
  absl::Mutex mutex_;
  int hellos_ = 0;
  int refusals_ = 0;
  std::vector<worker::v1::Report> reports_;
  std::optional<absl::Status> gone_;
};

class LeaseSupervisorTest : public testing::Test {
 protected:
  LeaseSupervisorTest() { Restart(); }
  ~LeaseSupervisorTest() override {
    supervisor_.reset();
    EXPECT_TRUE(launcher_.KillAttempt(uid_, absl::ZeroDuration()).ok());
  }

  // As a new daemon: nothing in memory, a socket of the same name.
  void Restart() {
    supervisor_.reset();
    LeaseSupervisorOptions options;
    options.socket_path = temp_.File("worker.sock");
    options.kill_grace = absl::Milliseconds(100);
    supervisor_ = std::make_unique<LeaseSupervisor>(options, launcher_, clock_);
    ASSERT_TRUE(supervisor_->Serve(reports_).ok());
  }

  ProcessIdentity StartWorker(const std::string& behaviour, int64_t fencing_token = 1) {
    EXPECT_EQ(::setenv("TRAIND_FAKE_WORKER", behaviour.c_str(), 1), 0);
    worker::v1::WorkerAssignment assignment;
    assignment.set_attempt(1);
    assignment.set_attempt_uid(uid_);
    assignment.set_fencing_token(fencing_token);
    assignment.set_attempt_dir(attempt_dir_);
    assignment.set_checkpoints_dir(temp_.File("checkpoints"));
    assignment.set_daemon_target(supervisor_->target());
    const absl::StatusOr<ProcessIdentity> identity = supervisor_->StartWorker(assignment);
    EXPECT_TRUE(identity.ok()) << identity.status();
    return identity.value_or(ProcessIdentity{});
  }

  bool WaitForReports(size_t count) {
    return WaitUntil([&] { return reports_.reports().size() >= count; });
  }
  bool WaitForEnd() {
    return WaitUntil([&] { return reports_.gone().has_value(); });
  }
  std::string EndMessage() { return std::string(reports_.gone()->message()); }
  size_t Processes() { return FindMarkedProcesses(launcher::kAttemptMark, uid_).size(); }
  std::string Hold() { return absl::StrCat("hold_at=3 hold_file=", temp_.File("go")); }
  void LetGo() { EXPECT_TRUE(WriteFileAtomically(temp_.File("go"), "").ok()); }

  const TempDir temp_;
  const std::string uid_ = absl::StrCat("supervisor-", temp_.path());
  const std::string attempt_dir_ = temp_.File("attempts/1");
  FakeClock clock_;
  FakeReports reports_;
  launcher::LocalLauncher launcher_{{kFakeWorker, temp_.path()}};
  std::unique_ptr<LeaseSupervisor> supervisor_;
};

constexpr size_t kReportsBeforeSteps = 3;

TEST_F(LeaseSupervisorTest, PassesOnEveryReportInOrderAndThenTheEnd) {
  StartWorker("steps=50 delay_ms=0");
  ASSERT_TRUE(WaitForEnd());
  const auto reports = reports_.reports();
  ASSERT_EQ(reports.size(), kReportsBeforeSteps + 50 + 1);
  EXPECT_EQ(reports.back().finished().result(), worker::v1::Finished::SUCCEEDED);
  EXPECT_THAT(EndMessage(), HasSubstr("exited with code 0"));
  EXPECT_TRUE(supervisor_->ListWorkers().empty());
}

TEST_F(LeaseSupervisorTest, SocketIsForTheOwnerOnly) {
  struct stat info {};
  ASSERT_EQ(::stat(temp_.File("worker.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
}

TEST_F(LeaseSupervisorTest, ACrashIsReportedWithSignalAndLastLines) {
  StartWorker("crash_at=2");
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ReasonOf(*reports_.gone()), Reason::kWorkerLost);
  EXPECT_THAT(EndMessage(), HasSubstr("killed by signal 9"));
  EXPECT_THAT(EndMessage(), HasSubstr("told to crash at step 2"));
  EXPECT_EQ(reports_.reports().size(), kReportsBeforeSteps + 2);
}

TEST_F(LeaseSupervisorTest, ABrokenLineChangesNothing) {
  StartWorker("steps=20 drop_line=1");
  ASSERT_TRUE(WaitForEnd());
  EXPECT_GT(reports_.hellos(), 1);
  EXPECT_EQ(reports_.reports().size(), kReportsBeforeSteps + 20 + 1);
}

TEST_F(LeaseSupervisorTest, ReportsThatCannotBeCommittedComeAgain) {
  reports_.RefuseNext(3);
  StartWorker("steps=5");
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(reports_.reports().size(), kReportsBeforeSteps + 5 + 1);
}

TEST_F(LeaseSupervisorTest, AWorkerWithAnOldTokenIsTurnedAway) {
  StartWorker("steps=5", /*fencing_token=*/0);
  ASSERT_TRUE(WaitForEnd());
  EXPECT_TRUE(reports_.reports().empty());
}

TEST_F(LeaseSupervisorTest, ASilentWorkerIsKilledWhenItsLeaseRunsOut) {
  const ProcessIdentity identity = StartWorker(Hold());
  ASSERT_TRUE(WaitForReports(kReportsBeforeSteps + 3));
  ASSERT_EQ(::kill(identity.pid, SIGSTOP), 0);
  clock_.Advance(absl::Seconds(29));
  supervisor_->StopWorker("another", true, absl::ZeroDuration());
  EXPECT_FALSE(reports_.gone().has_value());
  clock_.Advance(absl::Seconds(32));
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(EndMessage(), HasSubstr("gave no sign of life"));
  EXPECT_EQ(Processes(), 0u);
}

TEST_F(LeaseSupervisorTest, AWorkerThatNeverDialsIsKilled) {
  StartWorker("never_dial=1");
  ASSERT_TRUE(WaitUntil([&] { return Processes() == 1; }));
  clock_.Advance(absl::Seconds(61));
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(Processes(), 0u);
}

TEST_F(LeaseSupervisorTest, AWorkerThatSpeaksKeepsItsLease) {
  StartWorker(Hold());
  ASSERT_TRUE(WaitForReports(kReportsBeforeSteps + 3));
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(absl::Seconds(20));
    ASSERT_TRUE(WaitUntil([&] {
      const auto workers = supervisor_->ListWorkers();
      return workers.size() == 1 && workers[0].heartbeat_age == absl::ZeroDuration();
    }));
  }
  LetGo();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(EndMessage(), HasSubstr("exited with code 0"));
}

TEST_F(LeaseSupervisorTest, AStopReachesTheWorker) {
  StartWorker(Hold());
  ASSERT_TRUE(WaitForReports(kReportsBeforeSteps + 3));
  supervisor_->StopWorker(uid_, /*checkpoint=*/true, absl::Seconds(10));
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(reports_.reports().back().finished().result(), worker::v1::Finished::STOPPED);
}

TEST_F(LeaseSupervisorTest, AStopBeforeTheWorkerDialsReachesItToo) {
  StartWorker(Hold());
  supervisor_->StopWorker(uid_, /*checkpoint=*/false, absl::Seconds(10));
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(reports_.reports().back().finished().result(), worker::v1::Finished::STOPPED);
}

TEST_F(LeaseSupervisorTest, ADeafWorkerIsKilledAfterTheGrace) {
  StartWorker(Hold() + " deaf=1");
  ASSERT_TRUE(WaitForReports(kReportsBeforeSteps + 3));
  supervisor_->StopWorker(uid_, /*checkpoint=*/false, absl::Seconds(10));
  clock_.Advance(absl::Seconds(11));
  ASSERT_TRUE(WaitForEnd());
  EXPECT_THAT(EndMessage(), HasSubstr("did not leave within 10s"));
  EXPECT_EQ(Processes(), 0u);
}

TEST_F(LeaseSupervisorTest, ARestartedDaemonGoesOnWithTheSameProcess) {
  const ProcessIdentity identity = StartWorker(Hold() + " steps=6");
  ASSERT_TRUE(WaitForReports(kReportsBeforeSteps + 3));
  Restart();
  supervisor_->ReattachWorker({uid_, attempt_dir_, identity});
  LetGo();
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(reports_.reports().size(), kReportsBeforeSteps + 6 + 1);
}

TEST_F(LeaseSupervisorTest, AWorkerThatDiedWhileTheDaemonWasAwayIsReportedGone) {
  const ProcessIdentity identity = StartWorker(Hold());
  ASSERT_TRUE(WaitForReports(kReportsBeforeSteps + 3));
  supervisor_->Stop();
  ASSERT_EQ(::kill(identity.pid, SIGKILL), 0);
  ASSERT_TRUE(WaitUntil([&] { return Processes() == 0; }));
  EXPECT_FALSE(reports_.gone().has_value());
  Restart();
  supervisor_->ReattachWorker({uid_, attempt_dir_, identity});
  ASSERT_TRUE(WaitForEnd());
  EXPECT_EQ(ReasonOf(*reports_.gone()), Reason::kWorkerLost);
}

TEST_F(LeaseSupervisorTest, AFailedStartIsAnErrorAndNothingElse) {
  launcher::LocalLauncher broken({"/no/worker", temp_.path()});
  LeaseSupervisor other({.socket_path = temp_.File("other.sock")}, broken, clock_);
  worker::v1::WorkerAssignment assignment;
  assignment.set_attempt_dir(attempt_dir_);
  EXPECT_EQ(ReasonOf(other.StartWorker(assignment).status()), Reason::kLaunchFailed);
  EXPECT_TRUE(other.ListWorkers().empty());
}

TEST_F(LeaseSupervisorTest, ATooLongSocketPathIsExplained) {
  LeaseSupervisor other({.socket_path = "/" + std::string(120, 'x')}, launcher_, clock_);
  const absl::Status status = other.Serve(reports_);
  EXPECT_EQ(ReasonOf(status), Reason::kConfigInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr("121 bytes"));
}

TEST_F(LeaseSupervisorTest, AStreamWithoutHelloIsRefused) {
  const auto channel =
      grpc::CreateChannel(supervisor_->target(), grpc::InsecureChannelCredentials());
  const auto stub = worker::v1::WorkerService::NewStub(channel);
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  worker::v1::WorkerRequest request;
  request.mutable_heartbeat();
  stream->Write(request);
  worker::v1::DaemonResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(ReasonOf(FromGrpcStatus(stream->Finish())), Reason::kInvalidField);
}

}  // namespace
}  // namespace traind::supervisor
