// The real `traind`, killed at bad moments and started again.
#include <unistd.h>

#include <csignal>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/os/subprocess.h"
#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/launcher/local_launcher.h"
#include "tests/support/daemon_client.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr absl::Duration kLimit = absl::Seconds(60);

class DaemonCrashTest : public testing::Test {
 protected:
  DaemonCrashTest() {
    EXPECT_TRUE(BecomeSubreaper().ok());
    const std::string config = absl::StrCat(
        "state_dir: '", state_dir_, "'\nlisten_unix: '", socket_, "'\nmetrics_address: ''\n",
        "allowed_roots: '", temp_.path(), "'\nworker_binary: '", TRAIND_FAKE_WORKER_BINARY, "'\n");
    EXPECT_TRUE(WriteFileAtomically(config_file_, config).ok());
  }
  ~DaemonCrashTest() override {
    if (daemon_) Kill();
    launcher::LocalLauncher launcher({"", state_dir_});
    for (const std::string& uid : launcher.FindAttempts()) {
      EXPECT_TRUE(launcher.KillAttempt(uid, absl::ZeroDuration()).ok());
    }
  }

  Subprocess Spawn(const std::vector<std::string>& flags, const std::string& behaviour = "",
                   const std::string& fault = "") {
    SubprocessOptions options;
    options.argv = {TRAIND_BINARY};
    options.argv.insert(options.argv.end(), flags.begin(), flags.end());
    options.environment = {{"TRAIND_FAKE_WORKER", behaviour}, {"TRAIND_FAULT", fault}};
    options.output_path = log_file_;
    absl::StatusOr<Subprocess> process = Subprocess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    return *std::move(process);
  }
  void Start(const std::string& behaviour, const std::string& fault = "") {
    daemon_.emplace(Spawn({"--config", config_file_}, behaviour, fault));
    client_.emplace(socket_);
  }
  void Kill() {
    ASSERT_TRUE(daemon_->Signal(SIGKILL).ok());
    ASSERT_TRUE(daemon_->Wait(kLimit).has_value());
    daemon_.reset();
  }

  v1::Job Submit() {
    const auto job = client_->CreateJob(MakeJobRequest(temp_.path()));
    EXPECT_TRUE(job.ok()) << job.status() << Log();
    return job.value_or(v1::Job());
  }
  std::string Log() { return ReadFile(log_file_).value_or("no log"); }
  std::string Hold(int step) {
    return absl::StrCat("hold_at=", step, " hold_file=", temp_.File("go"), " ");
  }
  void LetGo() { ASSERT_TRUE(WriteFileAtomically(temp_.File("go"), "").ok()); }
  std::vector<pid_t> WorkerPids(const v1::Job& job) {
    std::vector<pid_t> pids;
    for (const ProcessIdentity& identity :
         FindMarkedProcesses(launcher::kAttemptMark, job.attempt().uid())) {
      pids.push_back(identity.pid);
    }
    return pids;
  }

  const TempDir temp_;
  const std::string state_dir_ = temp_.File("state");
  const std::string socket_ = temp_.File("traind.sock");
  const std::string config_file_ = temp_.File("traind.conf");
  const std::string log_file_ = temp_.File("traind.log");
  // A new one for each daemon: the old one may not have noticed yet that its line is dead.
  std::optional<DaemonClient> client_;
  std::optional<Subprocess> daemon_;
};

TEST_F(DaemonCrashTest, KilledWhileAJobRunsTheSameWorkerGoesOnAndNoStepIsLostOrRepeated) {
  const std::string behaviour = Hold(4) + "steps=10";
  Start(behaviour);
  const v1::Job job = Submit();
  const v1::Job before = client_->WaitForStep(job.name(), 4);
  const std::vector<v1::Event> seen =
      client_->Watch(job.name(), 0, static_cast<size_t>(before.last_sequence()));
  const std::vector<pid_t> workers = WorkerPids(before);
  ASSERT_THAT(workers, SizeIs(1)) << Log();
  Kill();
  EXPECT_EQ(WorkerPids(before), workers) << "the worker died with the daemon";
  LetGo();
  Start(behaviour);
  // The watcher comes back with the last number that it saw.
  const std::vector<v1::Event> rest = client_->Watch(job.name(), before.last_sequence());
  EXPECT_TRUE(IsDense(seen));
  EXPECT_TRUE(IsDense(rest, before.last_sequence() + 1));
  std::vector<int64_t> steps = StepsOf(seen);
  for (const int64_t step : StepsOf(rest)) steps.push_back(step);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)) << Log();
  const v1::Job after = client_->WaitFor(job.name(), v1::Job::SUCCEEDED);
  EXPECT_EQ(after.state(), v1::Job::SUCCEEDED) << after.error().message() << Log();
  EXPECT_EQ(after.attempt().uid(), before.attempt().uid());
}

TEST_F(DaemonCrashTest, KilledWhileACancelIsUnderWayTheNextDaemonFinishesIt) {
  const std::string behaviour = Hold(2);
  Start(behaviour + "deaf=1");
  const v1::Job job = Submit();
  const v1::Job before = client_->WaitForStep(job.name(), 2);
  ASSERT_TRUE(client_->CancelJob(job.name()).ok());
  Kill();
  for (const pid_t pid : WorkerPids(before)) ASSERT_EQ(::kill(pid, SIGKILL), 0);
  Start(behaviour);
  EXPECT_EQ(client_->WaitFor(job.name(), v1::Job::CANCELLED).state(), v1::Job::CANCELLED) << Log();
  EXPECT_TRUE(WorkerPids(before).empty());
}

// At each of these the change is committed and what follows from it is not done.
class FaultPointTest : public DaemonCrashTest, public testing::WithParamInterface<const char*> {};

TEST_P(FaultPointTest, TheNextDaemonMakesTheJobEndOnceAndWhole) {
  Start("steps=6", absl::StrCat(GetParam(), ":exit"));
  v1::CreateJobRequest request = MakeJobRequest(temp_.path());
  request.set_request_id("a3c1a7de-5f0e-4d1e-8a54-5f0d5a1a7a01");
  // The daemon may die before it answers.
  (void)client_->CreateJob(request).status();
  const std::optional<ExitState> exit = daemon_->Wait(kLimit);
  ASSERT_TRUE(exit.has_value()) << "the fault point was not reached" << Log();
  EXPECT_EQ(exit->value, 137);
  daemon_.reset();

  Start("steps=6");
  const auto job = client_->CreateJob(request);
  ASSERT_TRUE(job.ok()) << job.status() << Log();
  const v1::Job ended = client_->WaitFor(job->name(), v1::Job::SUCCEEDED);
  EXPECT_EQ(ended.state(), v1::Job::SUCCEEDED) << ended.error().message() << Log();
  EXPECT_THAT(ended.attempt().name(), HasSubstr("/attempts/1")) << Log();
  EXPECT_THAT(*client_->ListJobs(), SizeIs(1));
  const std::vector<v1::Event> events = client_->Watch(ended.name(), 0);
  EXPECT_TRUE(IsDense(events));
  EXPECT_THAT(StepsOf(events), ElementsAre(1, 2, 3, 4, 5, 6));
}

INSTANTIATE_TEST_SUITE_P(Controller, FaultPointTest,
                         testing::Values("controller.after_create", "controller.after_place",
                                         "controller.after_start", "controller.after_reports"),
                         [](const auto& point) {
                           return std::string(point.param).substr(sizeof "controller." - 1);
                         });

TEST_F(DaemonCrashTest, SigtermEndsTheDaemonWithZeroAndLeavesTheWorker) {
  const std::string behaviour = Hold(2);
  Start(behaviour);
  const v1::Job job = Submit();
  const v1::Job before = client_->WaitForStep(job.name(), 2);
  ASSERT_TRUE(daemon_->Signal(SIGTERM).ok());
  const std::optional<ExitState> exit = daemon_->Wait(kLimit);
  daemon_.reset();
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(DescribeExit(*exit), "exited with code 0") << Log();
  EXPECT_THAT(WorkerPids(before), SizeIs(1));
}

TEST_F(DaemonCrashTest, ASecondDaemonEndsWithOneLineThatNamesTheFirst) {
  Start("");
  ASSERT_TRUE(client_->ListJobs().ok());
  ASSERT_TRUE(RemoveAll(log_file_).ok());
  Subprocess second = Spawn({"--config", config_file_});
  const std::optional<ExitState> exit = second.Wait(kLimit);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->value, 1);
  const std::vector<std::string> lines = absl::StrSplit(Log(), '\n', absl::SkipEmpty());
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr(absl::StrCat("process id ", daemon_->identity().pid)));
  EXPECT_THAT(lines[0], HasSubstr("[STATE_DIR_LOCKED]"));
}

TEST_F(DaemonCrashTest, CheckConfigPrintsEverySettingAndWrongOnesEndWithTheirName) {
  Subprocess good = Spawn({"--config", config_file_, "--check-config"});
  EXPECT_EQ(good.Wait(kLimit)->value, 0);
  EXPECT_THAT(Log(), HasSubstr("cpu_slots: 1"));
  EXPECT_THAT(Log(), HasSubstr(absl::StrCat("state_dir: \"", state_dir_, "\"")));

  ASSERT_TRUE(WriteFileAtomically(config_file_, "cpu_slots: -1\n").ok());
  Subprocess bad = Spawn({"--config", config_file_, "--state-dir", state_dir_});
  EXPECT_EQ(bad.Wait(kLimit)->value, 1);
  EXPECT_THAT(Log(), HasSubstr("cpu_slots"));
  EXPECT_THAT(Log(), HasSubstr("[CONFIG_INVALID]"));

  EXPECT_EQ(Spawn({"--no-such-flag"}).Wait(kLimit)->value, 2);
  EXPECT_EQ(Spawn({"--version"}).Wait(kLimit)->value, 0);
  EXPECT_THAT(Log(), HasSubstr("traind 0."));
}

}  // namespace
}  // namespace traind
