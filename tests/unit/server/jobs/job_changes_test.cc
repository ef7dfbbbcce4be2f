#include "server/jobs/job_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"
#include "server/jobs/job_state.h"
#include "tests/support/test_jobs.h"

namespace traind::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using worker::v1::Finished;
using worker::v1::Report;

JobRecord Starting() { return PlacedRecord(QueuedRecord("a")); }

JobUpdate Apply(const JobRecord& record, const std::vector<Report>& reports) {
  const storage::v1::AttemptRecord& attempt = record.attempts.back();
  auto update = ApplyReports(record, attempt.uid(), attempt.fencing_token(), reports, TestTime(5));
  EXPECT_TRUE(update.ok()) << update.status();
  EXPECT_TRUE(update->has_value());
  return **update;
}

JobRecord Running() {
  const JobRecord starting = Starting();
  return After(starting, Apply(starting, {StepReport(1, 1)}));
}

JobRecord Cancelling() {
  const JobRecord running = Running();
  return After(running, *RequestCancel(running, TestTime(6)));
}

absl::Status WorkerLost() {
  return Error(absl::StatusCode::kUnavailable, Reason::kWorkerLost, "killed by signal 9");
}

std::vector<v1::Job::State> StatesEntered(const JobUpdate& update) {
  std::vector<v1::Job::State> states;
  for (const v1::Event& event : update.events) {
    if (event.has_state_change()) states.push_back(event.state_change().to());
  }
  return states;
}

Report FailedReport(int64_t number, Reason reason, const std::string& message) {
  Report report = FinishedReport(number, Finished::FAILED);
  *report.mutable_finished()->mutable_error() =
      ToRpcStatus(Error(absl::StatusCode::kInvalidArgument, reason, message));
  return report;
}

// --- QueuedJob

TEST(QueuedJobTest, KeepsWhatTheUserAskedForAndStartsTheHistory) {
  v1::Job job = TestJob("a");
  job.set_priority(7);
  job.set_display_name("mine");
  (*job.mutable_labels())["team"] = "x";
  const JobUpdate update = QueuedJob(job, TestTime());
  EXPECT_EQ(update.job.state(), v1::Job::QUEUED);
  EXPECT_EQ(update.job.name(), "jobs/a");
  EXPECT_EQ(update.job.uid(), "uid-a");
  EXPECT_EQ(update.job.owner(), "user:1000");
  EXPECT_EQ(update.job.priority(), 7);
  EXPECT_EQ(update.job.display_name(), "mine");
  EXPECT_EQ(update.job.labels().at("team"), "x");
  EXPECT_EQ(update.job.spec().base_model().path(), "/models/tiny");
  EXPECT_EQ(update.job.resources().max_retries(), 1);
  EXPECT_EQ(update.job.create_time().seconds(), absl::ToUnixSeconds(TestTime()));
  EXPECT_EQ(update.job.update_time().seconds(), absl::ToUnixSeconds(TestTime()));
  EXPECT_FALSE(update.attempt.has_value());
  ASSERT_THAT(update.events, SizeIs(1));
  EXPECT_EQ(update.events[0].state_change().from(), v1::Job::STATE_UNSPECIFIED);
  EXPECT_EQ(update.events[0].state_change().to(), v1::Job::QUEUED);
  EXPECT_EQ(update.events[0].attempt(), 0);
}

TEST(QueuedJobTest, DropsOutputFieldsThatAClientSent) {
  v1::Job job = TestJob("a");
  job.set_state(v1::Job::SUCCEEDED);
  job.mutable_error()->set_code(3);
  job.mutable_end_time()->set_seconds(1);
  job.mutable_attempt()->set_step(3);
  job.mutable_progress()->set_step(3);
  job.mutable_plan()->set_tokens(3);
  job.set_pending_reason("?");
  job.set_adapter_path("/etc");
  job.set_last_sequence(9);
  job.set_revision(9);
  job.set_etag("\"r9\"");
  const v1::Job stored = QueuedJob(job, TestTime()).job;
  v1::Job expected = TestJob("a");
  expected.set_state(v1::Job::QUEUED);
  expected.mutable_create_time()->set_seconds(absl::ToUnixSeconds(TestTime()));
  expected.mutable_update_time()->set_seconds(absl::ToUnixSeconds(TestTime()));
  EXPECT_EQ(stored.DebugString(), expected.DebugString());
}

TEST(QueuedJobTest, KeepsNanoseconds) {
  const absl::Time now = TestTime() + absl::Nanoseconds(123'456'789);
  EXPECT_EQ(QueuedJob(TestJob("a"), now).job.create_time().nanos(), 123'456'789);
}

// --- PlaceJob

TEST(PlaceJobTest, MakesTheFirstAttempt) {
  const auto update =
      PlaceJob(QueuedRecord("a"), {"attempt-1", "nodes/local", {"cpu0", "cpu1"}}, TestTime(1));
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->attempt->uid(), "attempt-1");
  EXPECT_EQ(update->attempt->number(), 1);
  EXPECT_EQ(update->attempt->fencing_token(), 1);
  EXPECT_FALSE(update->attempt->ended());
  EXPECT_EQ(update->job.state(), v1::Job::STARTING);
  EXPECT_EQ(update->job.attempt().name(), "jobs/a/attempts/1");
  EXPECT_EQ(update->job.attempt().phase(), v1::Attempt::LAUNCHING);
  EXPECT_EQ(update->job.attempt().node(), "nodes/local");
  EXPECT_THAT(update->job.attempt().devices(), ElementsAre("cpu0", "cpu1"));
  EXPECT_EQ(update->job.attempt().create_time().seconds(), absl::ToUnixSeconds(TestTime(1)));
  ASSERT_THAT(update->events, SizeIs(1));
  EXPECT_EQ(update->events[0].attempt(), 1);
}

TEST(PlaceJobTest, NumberAndTokenGrowWithEachAttempt) {
  JobRecord record = QueuedRecord("a");
  record.job.mutable_resources()->set_max_retries(5);
  for (int attempt = 1; attempt <= 4; ++attempt) {
    record = PlacedRecord(record);
    EXPECT_EQ(record.attempts.back().number(), attempt);
    EXPECT_EQ(record.attempts.back().fencing_token(), attempt);
    record = After(record, **AttemptLost(record, WorkerLost(), TestTime(2)));
  }
  EXPECT_THAT(record.attempts, SizeIs(4));
}

TEST(PlaceJobTest, ClearsThePendingReasonAndTheOldAttempt) {
  JobRecord record = Starting();
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(2)));
  record = After(record, *Waits(record, "waits for 1 cpu device", TestTime(3)));
  record = PlacedRecord(record);
  EXPECT_EQ(record.job.pending_reason(), "");
  EXPECT_FALSE(record.job.attempt().has_error());
  EXPECT_FALSE(record.job.attempt().has_end_time());
}

TEST(PlaceJobTest, OnlyAQueuedJobCanBePlaced) {
  for (const JobRecord& record : {Starting(), Running(), Cancelling()}) {
    const auto update = PlaceJob(record, {"x", "nodes/local", {"cpu0"}}, TestTime());
    EXPECT_EQ(update.status().code(), absl::StatusCode::kFailedPrecondition);
  }
}

// --- WorkerLaunched, Waits, NeverFits

TEST(WorkerLaunchedTest, RemembersTheProcessWithoutAnEvent) {
  const JobUpdate update = WorkerLaunched(Starting(), {4711, 99, "boot"}, TestTime(2));
  EXPECT_EQ(update.attempt->pid(), 4711);
  EXPECT_EQ(update.attempt->pid_start_ticks(), 99);
  EXPECT_EQ(update.attempt->boot_id(), "boot");
  EXPECT_EQ(update.attempt->uid(), "attempt-1");
  EXPECT_THAT(update.events, SizeIs(0));
  EXPECT_EQ(update.job.state(), v1::Job::STARTING);
}

TEST(WaitsTest, ChangesOnlyWhenTheReasonDoes) {
  JobRecord record = QueuedRecord("a");
  const auto first = Waits(record, "waits for 1 cpu device", TestTime(1));
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->job.pending_reason(), "waits for 1 cpu device");
  EXPECT_THAT(first->events, SizeIs(0));
  record = After(record, *first);
  EXPECT_FALSE(Waits(record, "waits for 1 cpu device", TestTime(2)).has_value());
  EXPECT_TRUE(Waits(record, "another", TestTime(2)).has_value());
  EXPECT_FALSE(Waits(Running(), "another", TestTime(2)).has_value());
}

TEST(NeverFitsTest, FailsTheJobWithTheReason) {
  const absl::Status why = Error(absl::StatusCode::kFailedPrecondition,
                                 Reason::kDeviceCountImpossible, "needs 9 cpu devices");
  const auto update = NeverFits(QueuedRecord("a"), why, TestTime(1));
  ASSERT_TRUE(update.ok());
  EXPECT_EQ(update->job.state(), v1::Job::FAILED);
  EXPECT_EQ(update->job.error().message(), "needs 9 cpu devices");
  EXPECT_TRUE(update->job.has_end_time());
  EXPECT_EQ(update->events[0].state_change().reason(), "DEVICE_COUNT_IMPOSSIBLE");
  EXPECT_FALSE(NeverFits(Running(), why, TestTime(1)).ok());
}

// --- ApplyReports: what each kind does

TEST(ApplyReportsTest, APhaseIsShownAndKeptAsAnEvent) {
  Report report = NumberedReport(1);
  report.set_phase(v1::Attempt::LOADING_MODEL);
  const JobUpdate update = Apply(Starting(), {report});
  EXPECT_EQ(update.job.attempt().phase(), v1::Attempt::LOADING_MODEL);
  EXPECT_EQ(update.job.state(), v1::Job::STARTING);
  ASSERT_THAT(update.events, SizeIs(1));
  EXPECT_EQ(update.events[0].phase_change().phase(), v1::Attempt::LOADING_MODEL);
  EXPECT_EQ(update.events[0].attempt(), 1);
  EXPECT_EQ(update.events[0].time().seconds(), report.time().seconds());
}

TEST(ApplyReportsTest, APlanSetsTheTotal) {
  Report report = NumberedReport(1);
  report.mutable_plan()->set_total_steps(80);
  (*report.mutable_plan()->mutable_rows_dropped())["too long"] = 2;
  const JobUpdate update = Apply(Starting(), {report});
  EXPECT_EQ(update.job.progress().total_steps(), 80);
  EXPECT_EQ(update.job.plan().rows_dropped().at("too long"), 2);
  EXPECT_EQ(update.events[0].plan().total_steps(), 80);
}

TEST(ApplyReportsTest, TheFirstStepMakesTheJobRunning) {
  const JobUpdate update = Apply(Starting(), {StepReport(1, 1, 3.5)});
  EXPECT_EQ(update.job.state(), v1::Job::RUNNING);
  ASSERT_THAT(update.events, SizeIs(2));
  EXPECT_EQ(update.events[0].state_change().from(), v1::Job::STARTING);
  EXPECT_EQ(update.events[0].state_change().to(), v1::Job::RUNNING);
  EXPECT_EQ(update.events[1].step().step(), 1);
  EXPECT_EQ(update.job.attempt().first_step_time().seconds(), 1'700'000'101);
  EXPECT_EQ(update.job.attempt().step(), 1);
}

TEST(ApplyReportsTest, StepsMoveTheProgress) {
  Report third = StepReport(2, 3, 1.25);
  third.mutable_step()->set_epoch(0.5);
  third.mutable_step()->set_peak_memory_bytes(77);
  const JobUpdate update = Apply(Running(), {third});
  const v1::Progress& progress = update.job.progress();
  EXPECT_EQ(progress.step(), 3);
  EXPECT_EQ(progress.total_steps(), 10);
  EXPECT_EQ(progress.loss(), 1.25);
  EXPECT_EQ(progress.epoch(), 0.5);
  EXPECT_EQ(progress.tokens(), 2000);
  EXPECT_EQ(progress.tokens_per_second(), 500);
  EXPECT_EQ(progress.peak_memory_bytes(), 77);
  // 1,000 tokens at 500 a second for two updates: one second each, seven are left.
  EXPECT_DOUBLE_EQ(progress.eta_seconds(), 7);
  EXPECT_THAT(update.events, SizeIs(1));
}

TEST(ApplyReportsTest, TheEtaIsNeverNonsense) {
  Report report = StepReport(2, 2);
  report.mutable_step()->set_tokens_per_second(0);
  EXPECT_EQ(Apply(Running(), {report}).job.progress().eta_seconds(), 0);
  report.mutable_step()->set_tokens_per_second(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(Apply(Running(), {report}).job.progress().eta_seconds(), 0);
  EXPECT_EQ(Apply(Running(), {StepReport(2, 1)}).job.progress().eta_seconds(), 0);   // No update.
  EXPECT_EQ(Apply(Running(), {StepReport(2, 10)}).job.progress().eta_seconds(), 0);  // The last.
  EXPECT_EQ(Apply(Running(), {StepReport(2, 12)}).job.progress().eta_seconds(), 0);  // Beyond.
}

TEST(ApplyReportsTest, ALossThatIsNotANumberIsPassedOn) {
  const JobUpdate update =
      Apply(Running(), {StepReport(2, 2, std::numeric_limits<double>::quiet_NaN())});
  EXPECT_TRUE(std::isnan(update.job.progress().loss()));
  EXPECT_TRUE(std::isnan(update.events[0].step().loss()));
}

TEST(ApplyReportsTest, PeakMemoryNeverShrinks) {
  Report high = StepReport(2, 2);
  high.mutable_step()->set_peak_memory_bytes(100);
  Report low = StepReport(3, 3);
  low.mutable_step()->set_peak_memory_bytes(50);
  EXPECT_EQ(Apply(Running(), {high, low}).job.progress().peak_memory_bytes(), 100);
}

TEST(ApplyReportsTest, OtherKindsBecomeEvents) {
  std::vector<Report> reports;
  for (int i = 2; i <= 5; ++i) reports.push_back(NumberedReport(i));
  reports[0].mutable_eval()->set_loss(1.5);
  reports[1].mutable_checkpoint()->set_step(4);
  reports[2].mutable_sample()->set_answer("42");
  reports[3].mutable_notice()->set_message("rows were cut");
  const JobUpdate update = Apply(Running(), reports);
  ASSERT_THAT(update.events, SizeIs(4));
  EXPECT_EQ(update.events[0].eval().loss(), 1.5);
  EXPECT_EQ(update.events[1].checkpoint().step(), 4);
  EXPECT_EQ(update.events[2].sample().answer(), "42");
  EXPECT_EQ(update.events[3].notice().message(), "rows were cut");
  EXPECT_EQ(update.job.progress().eval_loss(), 1.5);
}

TEST(ApplyReportsTest, AResumedRunStartsAtItsStep) {
  Report report = NumberedReport(1);
  report.mutable_resumed()->set_step(6);
  const JobUpdate update = Apply(Starting(), {report, StepReport(2, 8)});
  EXPECT_EQ(update.job.attempt().start_step(), 6);
  EXPECT_EQ(update.events[0].notice().severity(), v1::Notice::INFO);
  EXPECT_EQ(update.events[0].notice().message(), "continues after update 6");
  EXPECT_DOUBLE_EQ(update.job.progress().eta_seconds(), 2);  // One second an update, two left.
}

TEST(ApplyReportsTest, AFreshStartTellsNothing) {
  Report report = NumberedReport(1);
  report.mutable_resumed()->set_step(0);
  const JobUpdate update = Apply(Starting(), {report});
  EXPECT_THAT(update.events, SizeIs(0));
  EXPECT_EQ(update.attempt->acknowledged_report(), 1);
}

TEST(ApplyReportsTest, AKindOfANewerWorkerIsCountedAndSkipped) {
  const JobUpdate update = Apply(Running(), {NumberedReport(2)});
  EXPECT_THAT(update.events, SizeIs(0));
  EXPECT_EQ(update.attempt->acknowledged_report(), 2);
}

TEST(ApplyReportsTest, WithoutATimeTheDaemonsIsTaken) {
  Report report = StepReport(2, 2);
  report.clear_time();
  EXPECT_EQ(Apply(Running(), {report}).events[0].time().seconds(),
            absl::ToUnixSeconds(TestTime(5)));
}

// --- ApplyReports: the end

TEST(ApplyReportsTest, SuccessEndsTheJobOnce) {
  const JobUpdate update = Apply(Running(), {FinishedReport(2, Finished::SUCCEEDED)});
  EXPECT_EQ(update.job.state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(update.job.adapter_path(), "/state/jobs/uid/adapter");
  EXPECT_TRUE(update.job.has_end_time());
  EXPECT_FALSE(update.job.has_error());
  EXPECT_TRUE(update.job.attempt().has_end_time());
  EXPECT_TRUE(update.attempt->ended());
  EXPECT_THAT(StatesEntered(update), ElementsAre(v1::Job::SUCCEEDED));
}

TEST(ApplyReportsTest, ARunWithNothingLeftToDoSucceedsToo) {
  Report resumed = NumberedReport(1);
  resumed.mutable_resumed()->set_step(10);
  const JobUpdate update = Apply(Starting(), {resumed, FinishedReport(2, Finished::SUCCEEDED)});
  EXPECT_THAT(StatesEntered(update), ElementsAre(v1::Job::RUNNING, v1::Job::SUCCEEDED));
}

TEST(ApplyReportsTest, AFailureThatTheWorkerReportsIsNotTriedAgain) {
  for (const JobRecord& record : {Starting(), Running()}) {
    const int64_t next = record.attempts.back().acknowledged_report() + 1;
    const JobUpdate update =
        Apply(record, {FailedReport(next, Reason::kDatasetInvalid, "row 7 is not JSON")});
    EXPECT_EQ(update.job.state(), v1::Job::FAILED);
    EXPECT_EQ(update.job.error().message(), "row 7 is not JSON");
    EXPECT_EQ(ReasonOf(FromRpcStatus(update.job.error())), Reason::kDatasetInvalid);
    EXPECT_EQ(update.job.attempt().error().message(), "row 7 is not JSON");
    EXPECT_EQ(update.events.back().state_change().reason(), "DATASET_INVALID");
    EXPECT_EQ(update.events.back().state_change().message(), "row 7 is not JSON");
    EXPECT_EQ(update.events.back().state_change().error().message(), "row 7 is not JSON");
  }
}

TEST(ApplyReportsTest, AFailureWithoutAnErrorIsStillAFailure) {
  for (const auto result :
       {Finished::FAILED, Finished::RESULT_UNSPECIFIED, static_cast<Finished::Result>(55)}) {
    Report report = NumberedReport(2);
    report.mutable_finished()->set_result(result);
    const JobUpdate update = Apply(Running(), {report});
    EXPECT_EQ(update.job.state(), v1::Job::FAILED);
    EXPECT_EQ(ReasonOf(FromRpcStatus(update.job.error())), Reason::kBug);
  }
}

TEST(ApplyReportsTest, AStopLeavesTheStateUntilTheProcessIsGone) {
  for (const JobRecord& record : {Running(), Cancelling()}) {
    const JobUpdate update = Apply(record, {FinishedReport(2, Finished::STOPPED)});
    EXPECT_EQ(update.job.state(), record.job.state());
    EXPECT_TRUE(update.attempt->ended());
    EXPECT_THAT(StatesEntered(update), SizeIs(0));
  }
}

TEST(ApplyReportsTest, WhileCancellingStepsAreKeptAndSuccessWins) {
  const JobRecord cancelling = Cancelling();
  const JobUpdate step = Apply(cancelling, {StepReport(2, 2)});
  EXPECT_EQ(step.job.state(), v1::Job::CANCELLING);
  EXPECT_EQ(step.job.progress().step(), 2);
  const JobUpdate success = Apply(cancelling, {FinishedReport(2, Finished::SUCCEEDED)});
  EXPECT_EQ(success.job.state(), v1::Job::SUCCEEDED);
}

TEST(ApplyReportsTest, WhileCancellingAFailureEndsAsCancelledLater) {
  JobRecord record = Cancelling();
  record = After(record, Apply(record, {FailedReport(2, Reason::kOutputFailed, "no")}));
  EXPECT_EQ(record.job.state(), v1::Job::CANCELLING);
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(9)));
  EXPECT_EQ(record.job.state(), v1::Job::CANCELLED);
  EXPECT_EQ(record.job.attempt().error().message(), "no");
}

TEST(ApplyReportsTest, NothingAfterTheEndCounts) {
  const JobUpdate update =
      Apply(Running(), {FinishedReport(2, Finished::SUCCEEDED), StepReport(3, 9),
                        FailedReport(4, Reason::kBug, "late")});
  EXPECT_EQ(update.job.state(), v1::Job::SUCCEEDED);
  EXPECT_EQ(update.job.progress().step(), 1);
  EXPECT_EQ(update.attempt->acknowledged_report(), 4);
  EXPECT_THAT(StatesEntered(update), ElementsAre(v1::Job::SUCCEEDED));
}

// --- ApplyReports: numbers and fencing

TEST(ApplyReportsTest, WhatIsCommittedIsDropped) {
  const JobRecord record = Running();
  const JobUpdate update = Apply(record, {StepReport(1, 1), StepReport(2, 2)});
  EXPECT_THAT(update.events, SizeIs(1));
  EXPECT_EQ(update.job.progress().tokens(), 2000);
  EXPECT_EQ(update.attempt->acknowledged_report(), 2);
  const auto nothing = ApplyReports(record, "attempt-1", 1, {StepReport(1, 1)}, TestTime());
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_value());
  EXPECT_FALSE(ApplyReports(record, "attempt-1", 1, {}, TestTime())->has_value());
}

TEST(ApplyReportsTest, AMissingReportIsAskedFor) {
  const absl::Status status =
      ApplyReports(Running(), "attempt-1", 1, {StepReport(3, 3)}, TestTime()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReasonOf(status), Reason::kSequenceOutOfRange);
  EXPECT_EQ(status.message(), "report 2 is missing before report 3; send again from there");
  EXPECT_EQ(MetadataOf(status, "expected"), "2");
}

TEST(ApplyReportsTest, OneBatchEqualsManySingles) {
  std::vector<Report> reports;
  for (int i = 1; i <= 6; ++i) reports.push_back(StepReport(i, i));
  reports.push_back(FinishedReport(7, Finished::SUCCEEDED));
  const JobRecord start = Starting();
  const JobRecord batch = After(start, Apply(start, reports));
  JobRecord singles = start;
  for (const Report& report : reports) singles = After(singles, Apply(singles, {report}));
  singles.job.set_revision(batch.job.revision());
  EXPECT_EQ(singles.job.DebugString(), batch.job.DebugString());
  EXPECT_EQ(singles.attempts[0].DebugString(), batch.attempts[0].DebugString());
}

TEST(CheckFencingTest, OnlyTheNewestAttemptWithItsTokenMaySpeak) {
  JobRecord record = Running();
  EXPECT_TRUE(CheckFencing(record, "attempt-1", 1).ok());
  EXPECT_EQ(ReasonOf(CheckFencing(record, "attempt-1", 2)), Reason::kAttemptFenced);
  EXPECT_EQ(ReasonOf(CheckFencing(record, "other", 1)), Reason::kAttemptFenced);
  EXPECT_EQ(ReasonOf(CheckFencing(QueuedRecord("a"), "attempt-1", 1)), Reason::kAttemptFenced);
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(2)));
  EXPECT_EQ(ReasonOf(CheckFencing(record, "attempt-1", 1)), Reason::kAttemptFenced);  // Queued.
  record = PlacedRecord(record);
  EXPECT_EQ(ReasonOf(CheckFencing(record, "attempt-1", 1)), Reason::kAttemptFenced);
  EXPECT_TRUE(CheckFencing(record, "attempt-2", 2).ok());
}

TEST(CheckFencingTest, ALostAttemptCannotReportAnyMore) {
  JobRecord record = Running();
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(2)));
  const auto late = ApplyReports(record, "attempt-1", 1, {StepReport(2, 2)}, TestTime());
  EXPECT_EQ(ReasonOf(late.status()), Reason::kAttemptFenced);
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("attempt-1 of jobs/a"));
}

TEST(CheckFencingTest, AWorkerMaySendItsLastReportAgain) {
  JobRecord record = Running();
  const Report last = FinishedReport(2, Finished::SUCCEEDED);
  record = After(record, Apply(record, {last}));
  const auto again = ApplyReports(record, "attempt-1", 1, {last}, TestTime());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->has_value());
  EXPECT_EQ(ReasonOf(ApplyReports(record, "attempt-1", 1, {StepReport(3, 3)}, TestTime()).status()),
            Reason::kAttemptFenced);
}

// --- AttemptLost

TEST(AttemptLostTest, IsTriedAgainWhileRetriesAreLeft) {
  for (const JobRecord& record : {Starting(), Running()}) {
    const JobUpdate update = **AttemptLost(record, WorkerLost(), TestTime(3));
    EXPECT_EQ(update.job.state(), v1::Job::QUEUED);
    EXPECT_FALSE(update.job.has_error());
    EXPECT_FALSE(update.job.has_end_time());
    EXPECT_TRUE(update.attempt->ended());
    EXPECT_EQ(update.job.attempt().error().message(), "killed by signal 9");
    EXPECT_EQ(update.events[0].state_change().reason(), "WORKER_LOST");
    EXPECT_EQ(update.events[0].state_change().error().message(), "killed by signal 9");
  }
}

TEST(AttemptLostTest, FailsWhenNoRetryIsLeft) {
  JobRecord record = Running();
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(3)));
  record = PlacedRecord(record);  // The one retry that TestJob allows.
  const JobUpdate update = **AttemptLost(record, WorkerLost(), TestTime(4));
  EXPECT_EQ(update.job.state(), v1::Job::FAILED);
  EXPECT_EQ(ReasonOf(FromRpcStatus(update.job.error())), Reason::kWorkerLost);
}

TEST(AttemptLostTest, NoRetryMeansNone) {
  JobRecord record = Running();
  record.job.mutable_resources()->set_max_retries(0);
  EXPECT_EQ((*AttemptLost(record, WorkerLost(), TestTime(3)))->job.state(), v1::Job::FAILED);
}

TEST(AttemptLostTest, ThreeRetriesIfUnset) {
  JobRecord record = QueuedRecord("a");
  record.job.mutable_resources()->clear_max_retries();
  int attempts = 0;
  while (record.job.state() == v1::Job::QUEUED) {
    record = PlacedRecord(record);
    record = After(record, **AttemptLost(record, WorkerLost(), TestTime(3)));
    ++attempts;
  }
  EXPECT_EQ(attempts, 4);
}

TEST(AttemptLostTest, OnlyTheMachinesFaultIsTriedAgain) {
  const std::vector<std::pair<Reason, v1::Job::State>> expected = {
      {Reason::kWorkerLost, v1::Job::QUEUED},    {Reason::kLaunchFailed, v1::Job::QUEUED},
      {Reason::kTimeLimit, v1::Job::FAILED},     {Reason::kDiskFull, v1::Job::FAILED},
      {Reason::kOutOfMemory, v1::Job::FAILED},   {Reason::kDatasetInvalid, v1::Job::FAILED},
      {Reason::kModelNotFound, v1::Job::FAILED}, {Reason::kBug, v1::Job::FAILED},
  };
  for (const auto& [reason, state] : expected) {
    const absl::Status why = Error(absl::StatusCode::kInternal, reason, "why");
    EXPECT_EQ((*AttemptLost(Running(), why, TestTime()))->job.state(), state) << ReasonName(reason);
  }
}

TEST(AttemptLostTest, WithoutAReasonTheWorkerWasLost) {
  const JobUpdate update = **AttemptLost(Running(), absl::OkStatus(), TestTime());
  EXPECT_EQ(update.job.state(), v1::Job::QUEUED);
  EXPECT_EQ(update.events[0].state_change().reason(), "WORKER_LOST");
}

TEST(AttemptLostTest, AnUnaskedStopIsALostWorker) {
  JobRecord record = Running();
  record = After(record, Apply(record, {FinishedReport(2, Finished::STOPPED)}));
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(3)));
  EXPECT_EQ(record.job.state(), v1::Job::QUEUED);
}

TEST(AttemptLostTest, EndsACancellation) {
  const JobUpdate update = **AttemptLost(Cancelling(), WorkerLost(), TestTime(3));
  EXPECT_EQ(update.job.state(), v1::Job::CANCELLED);
  EXPECT_EQ(ReasonOf(FromRpcStatus(update.job.error())), Reason::kCancelledByUser);
  EXPECT_TRUE(update.job.has_end_time());
  EXPECT_EQ(update.events[0].state_change().reason(), "CANCELLED_BY_USER");
}

TEST(AttemptLostTest, ChangesNothingOnceTheJobHasEndedOrWaits) {
  JobRecord succeeded = Running();
  succeeded = After(succeeded, Apply(succeeded, {FinishedReport(2, Finished::SUCCEEDED)}));
  JobRecord waiting = Running();
  waiting = After(waiting, **AttemptLost(waiting, WorkerLost(), TestTime(3)));
  for (const JobRecord& record : {succeeded, waiting, QueuedRecord("a")}) {
    const auto update = AttemptLost(record, WorkerLost(), TestTime(4));
    ASSERT_TRUE(update.ok());
    EXPECT_FALSE(update->has_value());
  }
}

// --- RequestCancel

TEST(RequestCancelTest, CancelWhileQueuedEndsAtOnce) {
  const auto update = RequestCancel(QueuedRecord("a"), TestTime(1));
  ASSERT_TRUE(update.has_value());
  EXPECT_EQ(update->job.state(), v1::Job::CANCELLED);
  EXPECT_TRUE(update->job.has_end_time());
  EXPECT_EQ(ReasonOf(FromRpcStatus(update->job.error())), Reason::kCancelledByUser);
  EXPECT_THAT(StatesEntered(*update), ElementsAre(v1::Job::CANCELLED));
}

TEST(RequestCancelTest, CancelWhileItRunsWaitsForTheWorkers) {
  for (const JobRecord& record : {Starting(), Running()}) {
    const auto update = RequestCancel(record, TestTime(1));
    ASSERT_TRUE(update.has_value());
    EXPECT_EQ(update->job.state(), v1::Job::CANCELLING);
    EXPECT_FALSE(update->job.has_end_time());
    EXPECT_FALSE(update->job.has_error());
  }
}

TEST(RequestCancelTest, ASecondCancelChangesNothing) {
  EXPECT_FALSE(RequestCancel(Cancelling(), TestTime(1)).has_value());
  JobRecord ended = Cancelling();
  ended = After(ended, **AttemptLost(ended, WorkerLost(), TestTime(3)));
  EXPECT_FALSE(RequestCancel(ended, TestTime(4)).has_value());
}

TEST(RequestCancelTest, TheCancellersReasonIsInTheEvent) {
  const auto update = RequestCancel(Running(), TestTime(1));
  ASSERT_THAT(update->events, SizeIs(1));
  const v1::StateChange& change = update->events[0].state_change();
  EXPECT_EQ(change.from(), v1::Job::RUNNING);
  EXPECT_EQ(change.reason(), "CANCELLED_BY_USER");
  EXPECT_EQ(change.message(), "cancelled by a user");
  EXPECT_EQ(update->events[0].attempt(), 1);
}

// --- Times

// `update_time` follows every change; the others are set once.
TEST(TimesTest, EachChangeMovesTheUpdateTimeOnly) {
  JobRecord record = QueuedRecord("a");
  const int64_t created = record.job.create_time().seconds();
  const auto updated = [&record] { return record.job.update_time().seconds() - 1'700'000'000; };
  record = After(record, *Waits(record, "why", TestTime(1)));
  EXPECT_EQ(updated(), 1);
  record = After(record, *PlaceJob(record, {"attempt-1", "n", {"cpu0"}}, TestTime(2)));
  EXPECT_EQ(updated(), 2);
  record = After(record, WorkerLaunched(record, {1, 2, "boot"}, TestTime(3)));
  EXPECT_EQ(updated(), 3);
  record = After(record, **ApplyReports(record, "attempt-1", 1, {StepReport(1, 1)}, TestTime(4)));
  EXPECT_EQ(updated(), 4);
  EXPECT_FALSE(record.job.has_end_time());
  record = After(record, *RequestCancel(record, TestTime(5)));
  record = After(record, **AttemptLost(record, absl::OkStatus(), TestTime(6)));
  EXPECT_EQ(updated(), 6);
  EXPECT_EQ(record.job.end_time().seconds() - 1'700'000'000, 6);
  EXPECT_EQ(record.job.attempt().end_time().seconds() - 1'700'000'000, 6);
  EXPECT_EQ(record.job.create_time().seconds(), created);
}

TEST(TimesTest, TheFirstStepIsRememberedOnce) {
  JobRecord record = Running();
  const int64_t first = record.job.attempt().first_step_time().seconds();
  record = After(record, Apply(record, {StepReport(2, 2)}));
  EXPECT_EQ(record.job.attempt().first_step_time().seconds(), first);
}

TEST(TimesTest, AnAttemptEndsWhenItSaysSoNotWhenItsProcessIsGone) {
  JobRecord record = Running();
  record = After(record, Apply(record, {FinishedReport(2, Finished::STOPPED)}));
  const int64_t ended = record.job.attempt().end_time().seconds();
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(60)));
  EXPECT_EQ(record.job.attempt().end_time().seconds(), ended);
}

// --- MergeUpdate

TEST(MergeUpdateTest, TakesTheJobAsStored) {
  JobRecord record = QueuedRecord("a");
  const JobUpdate update = *Waits(record, "why", TestTime(1));
  v1::Job stored = update.job;
  stored.set_revision(42);
  MergeUpdate(update, stored, record);
  EXPECT_EQ(record.job.revision(), 42);
  EXPECT_EQ(record.job.pending_reason(), "why");
  EXPECT_THAT(record.attempts, SizeIs(0));
}

TEST(MergeUpdateTest, AddsANewAttemptAtTheEnd) {
  JobRecord record = Running();
  record = After(record, **AttemptLost(record, WorkerLost(), TestTime(2)));
  record = PlacedRecord(record);
  ASSERT_THAT(record.attempts, SizeIs(2));
  EXPECT_TRUE(record.attempts[0].ended());
  EXPECT_FALSE(record.attempts[1].ended());
}

TEST(MergeUpdateTest, ReplacesAnAttemptByItsNumber) {
  JobRecord record = Running();
  const JobUpdate update = WorkerLaunched(record, {4711, 1, "boot"}, TestTime());
  MergeUpdate(update, update.job, record);
  ASSERT_THAT(record.attempts, SizeIs(1));
  EXPECT_EQ(record.attempts[0].pid(), 4711);
}

}  // namespace
}  // namespace traind::jobs
