// The controller with everything real below it: SQLite, the supervisor, processes. Only the worker
// is a fake one.
#include "server/controller/controller.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/job_changes.h"
#include "server/jobs/job_state.h"
#include "server/launcher/local_launcher.h"
#include "server/store/sqlite_job_store.h"
#include "server/supervisor/lease_supervisor.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind::controller {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using State = v1::Job::State;

class ControllerTest : public testing::Test {
 protected:
  ControllerTest() {
    EXPECT_TRUE(BecomeSubreaper().ok());
    options_.worker.state_dir = temp_.path();
    options_.devices = {{"cpu0", "cpu", ""}};
    options_.cancel_grace = absl::Seconds(20);
    options_.retry_interval = absl::Milliseconds(20);
    Behave("");
  }
  ~ControllerTest() override {
    Stop();
    launcher::LocalLauncher launcher({"", temp_.path()});
    for (const std::string& uid : launcher.FindAttempts()) {
      EXPECT_TRUE(launcher.KillAttempt(uid, absl::ZeroDuration()).ok());
    }
  }

  // How workers that start from now on behave.
  static void Behave(const std::string& behaviour) {
    ASSERT_EQ(::setenv("TRAIND_FAKE_WORKER", behaviour.c_str(), 1), 0);
  }

  void Start(const std::string& worker = TRAIND_FAKE_WORKER_BINARY) {
    auto store = store::SqliteJobStore::Open({.path = temp_.File("traind.db")});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    events_ = std::make_unique<events::EventHub>();
    metrics_ = std::make_unique<metrics::Metrics>(metrics::MetricsOptions{}, clock_);
    launcher_ = std::make_unique<launcher::LocalLauncher>(
        launcher::LocalLauncherOptions{worker, temp_.path()});
    supervisor::LeaseSupervisorOptions leases;
    leases.socket_path = temp_.File("worker.sock");
    leases.kill_grace = absl::Milliseconds(100);
    supervisor_ = std::make_unique<supervisor::LeaseSupervisor>(leases, *launcher_, clock_);
    options_.worker.daemon_target = supervisor_->target();
    const ControllerParts parts{*store_, *supervisor_, *events_, *metrics_, clock_};
    controller_ = std::make_unique<Controller>(options_, parts);
    ASSERT_TRUE(supervisor_->Serve(*controller_).ok());
    ASSERT_TRUE(controller_->Start().ok());
  }

  // As if the daemon were gone; the workers run on.
  void Stop() {
    if (controller_ == nullptr) return;
    controller_->Stop();
    supervisor_->Stop();
    controller_.reset();
    supervisor_.reset();
    store_.reset();
  }

  static v1::CreateJobRequest Request(const std::string& job_id = "") {
    v1::CreateJobRequest request;
    request.set_job_id(job_id);
    request.mutable_job()->mutable_resources()->set_max_retries(1);
    return request;
  }

  v1::Job Create(const v1::CreateJobRequest& request) {
    const absl::StatusOr<v1::Job> job = controller_->CreateJob(request, "user:0");
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(v1::Job());
  }
  v1::Job Create(const std::string& job_id = "") { return Create(Request(job_id)); }

  v1::Job Get(const std::string& name) {
    const auto record = store_->GetJob(name);
    EXPECT_TRUE(record.ok()) << record.status();
    return record.ok() ? record->job : v1::Job();
  }
  // Waits for one of the two; fails early on another end.
  v1::Job WaitFor(const v1::Job& job, State state) {
    v1::Job now;
    EXPECT_TRUE(WaitUntil([&] {
      now = Get(job.name());
      return now.state() == state || jobs::IsTerminal(now.state());
    })) << now.DebugString();
    EXPECT_EQ(now.state(), state) << now.error().message();
    return now;
  }
  v1::Job WaitForStep(const v1::Job& job, int64_t step) {
    v1::Job now;
    EXPECT_TRUE(WaitUntil([&] {
      now = Get(job.name());
      return now.progress().step() >= step || jobs::IsTerminal(now.state());
    })) << now.DebugString();
    return now;
  }
  Reason ErrorReason(const v1::Job& job) { return ReasonOf(FromRpcStatus(job.error())); }

  // All events; fails if their numbers are not 1, 2, 3 …
  std::vector<v1::Event> Events(const v1::Job& job) {
    const auto events = store_->ReadEvents(job.uid(), 0, 100000);
    EXPECT_TRUE(events.ok()) << events.status();
    for (size_t i = 0; events.ok() && i < events->size(); ++i) {
      EXPECT_EQ((*events)[i].sequence(), static_cast<int64_t>(i) + 1);
    }
    EXPECT_EQ(Get(job.name()).last_sequence(), static_cast<int64_t>(events->size()));
    return *events;
  }
  std::vector<State> StatesOf(const v1::Job& job) {
    std::vector<State> states;
    for (const v1::Event& event : Events(job)) {
      if (event.has_state_change()) states.push_back(event.state_change().to());
    }
    return states;
  }
  std::vector<int64_t> StepsOf(const v1::Job& job) {
    std::vector<int64_t> steps;
    for (const v1::Event& event : Events(job)) {
      if (event.has_step()) steps.push_back(event.step().step());
    }
    return steps;
  }
  size_t Processes(const v1::Job& job) {
    return FindMarkedProcesses(launcher::kAttemptMark, job.attempt().uid()).size();
  }
  bool DeviceIsFree() {
    const auto uses = controller_->ListDeviceUse();
    return uses.size() == 1 && uses[0].job_name.empty();
  }
  std::string Hold(int step) {
    return absl::StrCat("hold_at=", step, " hold_file=", temp_.File("go"), " ");
  }
  void LetGo() { ASSERT_TRUE(WriteFileAtomically(temp_.File("go"), "").ok()); }

  const TempDir temp_;
  const SystemClock clock_;
  ControllerOptions options_;
  std::unique_ptr<store::JobStore> store_;
  std::unique_ptr<events::EventHub> events_;
  std::unique_ptr<metrics::Metrics> metrics_;
  std::unique_ptr<launcher::LocalLauncher> launcher_;
  std::unique_ptr<supervisor::LeaseSupervisor> supervisor_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerTest, RunsAJobToItsEndWithDenseEvents) {
  Behave("steps=20");
  Start();
  const v1::Job job = WaitFor(Create("first"), v1::Job::SUCCEEDED);
  EXPECT_EQ(job.name(), "jobs/first");
  EXPECT_THAT(job.adapter_path(), HasSubstr("/adapter"));
  EXPECT_THAT(StatesOf(job), ElementsAre(v1::Job::QUEUED, v1::Job::STARTING, v1::Job::RUNNING,
                                         v1::Job::SUCCEEDED));
  EXPECT_THAT(StepsOf(job), SizeIs(20));
  EXPECT_TRUE(WaitUntil([&] { return DeviceIsFree(); }));
  EXPECT_EQ(Processes(job), 0u);
}

TEST_F(ControllerTest, JobsTakeTurnsOnOneDevice) {
  Start();
  const v1::Job first = Create();
  const v1::Job second = Create();
  EXPECT_NE(first.name(), second.name());
  WaitFor(first, v1::Job::SUCCEEDED);
  WaitFor(second, v1::Job::SUCCEEDED);
}

TEST_F(ControllerTest, AWaitingJobSaysWhy) {
  Behave(Hold(1));
  Start();
  WaitForStep(Create(), 1);
  const v1::Job second = Create();
  EXPECT_TRUE(WaitUntil([&] { return !Get(second.name()).pending_reason().empty(); }));
  EXPECT_THAT(Get(second.name()).pending_reason(), HasSubstr("1 of 1 in use"));
  EXPECT_THAT(StatesOf(second), ElementsAre(v1::Job::QUEUED));
  LetGo();
  EXPECT_EQ(WaitFor(second, v1::Job::SUCCEEDED).pending_reason(), "");
}

TEST_F(ControllerTest, AJobThatCanNeverFitFails) {
  Start();
  v1::CreateJobRequest request = Request();
  request.mutable_job()->mutable_resources()->set_devices(9);
  EXPECT_EQ(ErrorReason(WaitFor(Create(request), v1::Job::FAILED)), Reason::kDeviceCountImpossible);
}

// Case: steps are logged after the checkpoint that the next attempt resumes from.
TEST_F(ControllerTest, ALostWorkerIsReplacedAndResumesFromItsCheckpoint) {
  Behave("steps=8 save_every=3 crash_at=5 crash_attempts=1");
  Start();
  const v1::Job job = WaitFor(Create(), v1::Job::SUCCEEDED);
  EXPECT_THAT(StatesOf(job),
              ElementsAre(v1::Job::QUEUED, v1::Job::STARTING, v1::Job::RUNNING, v1::Job::QUEUED,
                          v1::Job::STARTING, v1::Job::RUNNING, v1::Job::SUCCEEDED));
  EXPECT_EQ(job.attempt().start_step(), 3);
  std::vector<std::pair<int, int64_t>> steps;
  for (const v1::Event& event : Events(job)) {
    if (event.has_step()) steps.emplace_back(event.attempt(), event.step().step());
  }
  using P = std::pair<int, int64_t>;
  EXPECT_THAT(steps, ElementsAre(P(1, 1), P(1, 2), P(1, 3), P(1, 4), P(1, 5), P(2, 4), P(2, 5),
                                 P(2, 6), P(2, 7), P(2, 8)));
}

TEST_F(ControllerTest, AJobWithoutRetriesLeftFailsAsWorkerLost) {
  Behave("crash_at=2");
  Start();
  const v1::Job job = WaitFor(Create(), v1::Job::FAILED);
  EXPECT_EQ(ErrorReason(job), Reason::kWorkerLost);
  EXPECT_THAT(job.error().message(), HasSubstr("told to crash at step 2"));
  EXPECT_THAT(job.attempt().name(), HasSubstr("/attempts/2"));
  EXPECT_TRUE(WaitUntil([&] { return DeviceIsFree(); }));
}

TEST_F(ControllerTest, AFailureOfTheUsersIsNotTriedAgain) {
  Behave("fail=DATASET_INVALID");
  Start();
  const v1::Job job = WaitFor(Create(), v1::Job::FAILED);
  EXPECT_EQ(ErrorReason(job), Reason::kDatasetInvalid);
  EXPECT_THAT(job.attempt().name(), HasSubstr("/attempts/1"));
}

TEST_F(ControllerTest, AWorkerThatCannotBeStartedFailsTheJob) {
  Start("/no/such/traind-worker");
  const v1::Job job = WaitFor(Create(), v1::Job::FAILED);
  EXPECT_EQ(ErrorReason(job), Reason::kLaunchFailed);
  EXPECT_THAT(job.error().message(), HasSubstr("/no/such/traind-worker"));
}

TEST_F(ControllerTest, CancelInQueuedEndsAtOnce) {
  Behave(Hold(1));
  Start();
  WaitForStep(Create(), 1);
  const v1::Job second = Create();
  const absl::StatusOr<v1::Job> cancelled = controller_->CancelJob(second.name(), "");
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), v1::Job::CANCELLED);
  EXPECT_EQ(ErrorReason(*cancelled), Reason::kCancelledByUser);
  EXPECT_FALSE(Get(second.name()).has_attempt());
}

TEST_F(ControllerTest, CancelInStartingEndsAWorkerThatNeverDials) {
  Behave("never_dial=1");
  options_.cancel_grace = absl::Milliseconds(50);
  Start();
  const v1::Job job = WaitFor(Create(), v1::Job::STARTING);
  ASSERT_TRUE(controller_->CancelJob(job.name(), "").ok());
  const v1::Job ended = WaitFor(job, v1::Job::CANCELLED);
  EXPECT_EQ(Processes(ended), 0u);
}

TEST_F(ControllerTest, CancelInRunningStopsTheWorkerAndIsRepeatable) {
  Behave(Hold(2));
  Start();
  const v1::Job job = WaitForStep(Create(), 2);
  ASSERT_EQ(controller_->CancelJob(job.name(), "")->state(), v1::Job::CANCELLING);
  ASSERT_TRUE(controller_->CancelJob(job.name(), "").ok());
  const v1::Job ended = WaitFor(job, v1::Job::CANCELLED);
  EXPECT_EQ(Processes(ended), 0u);
  EXPECT_EQ(controller_->CancelJob(job.name(), "")->state(), v1::Job::CANCELLED);
  EXPECT_THAT(StatesOf(job), ElementsAre(v1::Job::QUEUED, v1::Job::STARTING, v1::Job::RUNNING,
                                         v1::Job::CANCELLING, v1::Job::CANCELLED));
}

TEST_F(ControllerTest, CancelKillsADeafWorkerAndThenSaysCancelled) {
  Behave(Hold(2) + "deaf=1");
  options_.cancel_grace = absl::Milliseconds(50);
  Start();
  const v1::Job job = WaitForStep(Create(), 2);
  ASSERT_TRUE(controller_->CancelJob(job.name(), "").ok());
  const v1::Job ended = WaitFor(job, v1::Job::CANCELLED);
  EXPECT_EQ(Processes(ended), 0u);
  EXPECT_TRUE(WaitUntil([&] { return DeviceIsFree(); }));
}

// Case: a family of processes, deaf to SIGTERM and partly in another session, many times.
TEST_F(ControllerTest, RoundsOfStartAndCancelLeaveNothingBehind) {
  constexpr int kRounds = 10;
  options_.cancel_grace = absl::ZeroDuration();
  Start(TRAIND_SOURCE_DIR "/tests/support/fake_worker_sigterm_deaf.sh");
  for (int round = 0; round < kRounds; ++round) {
    const v1::Job job = WaitFor(Create(), v1::Job::STARTING);
    ASSERT_TRUE(controller_->CancelJob(job.name(), "").ok());
    ASSERT_EQ(Processes(WaitFor(job, v1::Job::CANCELLED)), 0u);
    ASSERT_TRUE(WaitUntil([&] { return DeviceIsFree(); }));
  }
  EXPECT_TRUE(WaitUntil([] { return ::waitpid(-1, nullptr, WNOHANG) < 0; })) << "zombies are left";
}

TEST_F(ControllerTest, CancelOfAnEndedJobTellsItsEnd) {
  Start();
  const v1::Job job = WaitFor(Create(), v1::Job::SUCCEEDED);
  EXPECT_EQ(controller_->CancelJob(job.name(), "")->state(), v1::Job::SUCCEEDED);
}

TEST_F(ControllerTest, UnknownNamesAndStaleEtagsAreRefused) {
  Behave(Hold(1));
  Start();
  EXPECT_EQ(ReasonOf(controller_->CancelJob("jobs/none", "").status()), Reason::kJobNotFound);
  EXPECT_EQ(ReasonOf(controller_->DeleteJob("jobs/none", "")), Reason::kJobNotFound);
  const v1::Job job = WaitForStep(Create(), 1);
  EXPECT_EQ(ReasonOf(controller_->CancelJob(job.name(), "\"r0\"").status()), Reason::kEtagMismatch);
  EXPECT_EQ(ReasonOf(controller_->DeleteJob(job.name(), "\"r0\"")), Reason::kEtagMismatch);
  EXPECT_TRUE(controller_->CancelJob(job.name(), Get(job.name()).etag()).ok());
}

TEST_F(ControllerTest, DeleteIsForEndedJobsAndTakesTheirFiles) {
  Behave(Hold(1));
  Start();
  const v1::Job job = WaitForStep(Create(), 1);
  EXPECT_EQ(ReasonOf(controller_->DeleteJob(job.name(), "")), Reason::kJobNotDeletable);
  LetGo();
  WaitFor(job, v1::Job::SUCCEEDED);
  const std::string folder = absl::StrCat(temp_.path(), "/jobs/", job.uid());
  EXPECT_TRUE(FileExists(folder));
  // Refused as long as the worker is still leaving.
  EXPECT_TRUE(WaitUntil([&] { return controller_->DeleteJob(job.name(), "").ok(); }));
  EXPECT_FALSE(FileExists(folder));
  EXPECT_EQ(ReasonOf(store_->GetJob(job.name()).status()), Reason::kJobNotFound);
}

// Case: the same submit many times at once, after a restart, and with another body.
TEST_F(ControllerTest, ARequestIdMakesOneJob) {
  Behave(Hold(1));
  Start();
  v1::CreateJobRequest request = Request();
  request.set_request_id("b1a1c8f2-6c53-4b0e-9a4e-0d1d6a0d8f11");
  (*request.mutable_job()->mutable_labels())["team"] = "a";
  (*request.mutable_job()->mutable_labels())["kind"] = "b";
  std::vector<std::string> uids(50);
  std::vector<std::thread> callers;
  for (std::string& uid : uids) {
    callers.emplace_back([&] { uid = controller_->CreateJob(request, "user:0")->uid(); });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(std::set<std::string>(uids.begin(), uids.end()).size(), 1u);
  Stop();
  Start();
  EXPECT_EQ(controller_->CreateJob(request, "user:0")->uid(), uids[0]);
  request.mutable_job()->set_priority(7);
  EXPECT_EQ(ReasonOf(controller_->CreateJob(request, "user:0").status()), Reason::kRequestIdReused);
}

TEST_F(ControllerTest, AFullQueueRefusesNewJobsButKnowsRetries) {
  Behave(Hold(1));
  options_.max_queued_jobs = 1;
  Start();
  WaitForStep(Create(), 1);
  v1::CreateJobRequest request = Request("waits");
  request.set_request_id("c2a1c8f2-6c53-4b0e-9a4e-0d1d6a0d8f11");
  Create(request);
  EXPECT_EQ(ReasonOf(controller_->CreateJob(Request(), "user:0").status()), Reason::kQueueFull);
  EXPECT_EQ(Create(request).name(), "jobs/waits");
  request.set_request_id("d2a1c8f2-6c53-4b0e-9a4e-0d1d6a0d8f11");
  EXPECT_EQ(ReasonOf(controller_->CreateJob(request, "user:0").status()), Reason::kQueueFull);
}

TEST_F(ControllerTest, AJobThatRunsTooLongIsStoppedAndFails) {
  Behave(Hold(1));
  Start();
  v1::CreateJobRequest request = Request();
  request.mutable_job()->mutable_resources()->mutable_max_runtime()->set_nanos(100'000'000);
  const v1::Job job = WaitFor(Create(request), v1::Job::FAILED);
  EXPECT_EQ(ErrorReason(job), Reason::kTimeLimit);
  EXPECT_THAT(job.error().message(), HasSubstr("100ms"));
  EXPECT_THAT(job.attempt().name(), HasSubstr("/attempts/1"));
}

TEST_F(ControllerTest, ARestartGoesOnWithTheSameWorkerAndLosesNoStep) {
  Behave(Hold(3) + "steps=9");
  Start();
  const v1::Job before = WaitForStep(Create(), 3);
  Stop();
  LetGo();
  Start();
  const v1::Job after = WaitFor(before, v1::Job::SUCCEEDED);
  EXPECT_EQ(after.attempt().uid(), before.attempt().uid());
  EXPECT_THAT(StepsOf(after), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(ControllerTest, ARestartFindsADeadWorkerAndTriesAgain) {
  Behave(Hold(2) + "save_every=1");
  Start();
  const v1::Job before = WaitForStep(Create(), 2);
  Stop();
  ASSERT_TRUE(launcher_->KillAttempt(before.attempt().uid(), absl::ZeroDuration()).ok());
  LetGo();
  Start();
  const v1::Job after = WaitFor(before, v1::Job::SUCCEEDED);
  EXPECT_THAT(after.attempt().name(), HasSubstr("/attempts/2"));
  EXPECT_THAT(StepsOf(after), ElementsAre(1, 2, 3, 4, 5));
}

// Case: cancel, restart, and only then does the worker leave.
TEST_F(ControllerTest, ARestartFinishesACancel) {
  Behave(Hold(2) + "deaf=1");
  Start();
  const v1::Job job = WaitForStep(Create(), 2);
  ASSERT_TRUE(controller_->CancelJob(job.name(), "").ok());
  Stop();
  options_.cancel_grace = absl::Milliseconds(50);
  Start();
  EXPECT_EQ(Processes(WaitFor(job, v1::Job::CANCELLED)), 0u);
}

TEST_F(ControllerTest, ARestartStartsAWorkerThatWasPlacedButNeverStarted) {
  Start("/no/such/traind-worker");
  Stop();
  // What a daemon leaves that dies between the commit of a placement and the start.
  auto store = store::SqliteJobStore::Open({.path = temp_.File("traind.db")});
  ASSERT_TRUE(store.ok()) << store.status();
  v1::Job fresh;
  fresh.set_name("jobs/placed");
  fresh.set_uid("uid-placed");
  const auto created = (*store)->CreateJob(jobs::QueuedJob(fresh, clock_.Now()), {});
  ASSERT_TRUE(created.ok()) << created.status();
  const auto placed =
      jobs::PlaceJob({created->job, {}}, {"attempt-placed", "nodes/local", {"cpu0"}}, clock_.Now());
  ASSERT_TRUE((*store)->Commit(*placed).ok());
  store->reset();
  Start();
  const v1::Job job = WaitFor(fresh, v1::Job::SUCCEEDED);
  EXPECT_EQ(job.attempt().uid(), "attempt-placed");
}

TEST_F(ControllerTest, StraysOfAnEarlierDaemonAreKilledBeforeAnythingStarts) {
  Behave("never_dial=1");
  launcher::LocalLauncher earlier({TRAIND_FAKE_WORKER_BINARY, temp_.path()});
  worker::v1::WorkerAssignment assignment;
  assignment.set_attempt_uid("stray");
  assignment.set_attempt_dir(temp_.File("stray"));
  ASSERT_TRUE(earlier.Launch(assignment).ok());
  Behave("");
  Start();
  EXPECT_THAT(FindMarkedProcesses(launcher::kAttemptMark, "stray"), IsEmpty());
  WaitFor(Create(), v1::Job::SUCCEEDED);
}

TEST_F(ControllerTest, AStoppedControllerSaysThatItIsDraining) {
  Start();
  controller_->Stop();
  EXPECT_EQ(ReasonOf(controller_->CreateJob(Request(), "user:0").status()), Reason::kDraining);
  EXPECT_EQ(ReasonOf(controller_->DeleteJob("jobs/a", "")), Reason::kDraining);
  EXPECT_THAT(controller_->ListDeviceUse(), IsEmpty());
}

}  // namespace
}  // namespace traind::controller
