#include "server/store/sqlite_job_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "tests/support/test_store.h"

namespace traind::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using worker::v1::Finished;

std::vector<int64_t> Sequences(const std::vector<v1::Event>& events) {
  std::vector<int64_t> sequences;
  for (const v1::Event& event : events) sequences.push_back(event.sequence());
  return sequences;
}

// Commits an update and returns the record after it.
JobRecord CommitTo(TestStore& store, JobRecord record, const JobChange& change) {
  const absl::StatusOr<v1::Job> stored = store->Commit(change);
  EXPECT_TRUE(stored.ok()) << stored.status();
  jobs::MergeUpdate(change, *stored, record);
  return record;
}

// --- CreateJob

TEST(CreateJobTest, StoresTheJobWithItsFirstEvent) {
  TestStore store;
  const v1::Job job = store.Create("a");
  EXPECT_EQ(job.revision(), 1);
  EXPECT_EQ(job.etag(), "\"r1\"");
  EXPECT_EQ(job.last_sequence(), 1);
  const auto record = store->GetJob("jobs/a");
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record->job.DebugString(), job.DebugString());
  EXPECT_THAT(record->attempts, IsEmpty());
  const auto events = store->ReadEvents("uid-a", 0, 10);
  ASSERT_THAT(*events, SizeIs(1));
  EXPECT_EQ((*events)[0].sequence(), 1);
  EXPECT_EQ((*events)[0].state_change().to(), v1::Job::QUEUED);
}

TEST(CreateJobTest, ANameIsTakenOnce) {
  TestStore store;
  store.Create("a");
  v1::Job again = TestJob("a");
  again.set_uid("another-uid");
  const absl::Status status = store->CreateJob(jobs::QueuedJob(again, TestTime()), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(status), Reason::kJobExists);
  EXPECT_EQ(MetadataOf(status, "job"), "jobs/a");
  EXPECT_EQ(store->GetJob("jobs/a")->job.uid(), "uid-a");
  EXPECT_FALSE(store->ReadEvents("another-uid", 0, 10).ok());
}

TEST(CreateJobTest, ANameIsFreeAgainAfterADeletion) {
  TestStore store;
  store.Create("a");
  ASSERT_TRUE(store->DeleteJob("jobs/a").ok());
  EXPECT_EQ(store.Create("a").revision(), 1);
}

// --- Request ids

CreateResult CreateWith(TestStore& store, const std::string& job_id, const std::string& request_id,
                        uint64_t hash, absl::Time now = TestTime()) {
  auto result = store->CreateJob(jobs::QueuedJob(TestJob(job_id), now), {request_id, hash, now});
  EXPECT_TRUE(result.ok()) << result.status();
  return *result;
}

TEST(RequestIdTest, ARepeatedRequestGetsTheFirstJob) {
  TestStore store;
  EXPECT_FALSE(CreateWith(store, "a", "r", 1).replayed);
  const CreateResult again = CreateWith(store, "b", "r", 1);
  EXPECT_TRUE(again.replayed);
  EXPECT_EQ(again.job.name(), "jobs/a");
  EXPECT_EQ(ReasonOf(store->GetJob("jobs/b").status()), Reason::kJobNotFound);
}

TEST(RequestIdTest, ARepeatedRequestSeesTheJobAsItIsNow) {
  TestStore store;
  JobRecord record{CreateWith(store, "a", "r", 1).job, {}};
  CommitTo(store, record, *jobs::RequestCancel(record, TestTime(1)));
  EXPECT_EQ(CreateWith(store, "b", "r", 1).job.state(), v1::Job::CANCELLED);
}

TEST(RequestIdTest, HoldsAfterARestart) {
  TestStore store;
  CreateWith(store, "a", "r", 1);
  store.Reopen();
  EXPECT_TRUE(CreateWith(store, "b", "r", 1).replayed);
}

TEST(RequestIdTest, AnotherRequestWithTheSameIdIsRefused) {
  TestStore store;
  CreateWith(store, "a", "r", 1);
  const absl::Status status =
      store->CreateJob(jobs::QueuedJob(TestJob("b"), TestTime()), {"r", 2, TestTime()}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(status), Reason::kRequestIdReused);
  EXPECT_EQ(MetadataOf(status, "job"), "jobs/a");
  EXPECT_EQ(MetadataOf(status, "request_id"), "r");
}

TEST(RequestIdTest, EveryHashIsKeptWhole) {
  TestStore store;
  constexpr uint64_t kHigh = 0xfedcba9876543210;
  CreateWith(store, "a", "r", kHigh);
  EXPECT_TRUE(CreateWith(store, "b", "r", kHigh).replayed);
}

TEST(RequestIdTest, IsForgottenAfterADay) {
  TestStore store;
  CreateWith(store, "a", "r", 1);
  EXPECT_TRUE(CreateWith(store, "b", "r", 1, TestTime() + absl::Hours(23)).replayed);
  EXPECT_FALSE(CreateWith(store, "b", "r", 1, TestTime() + absl::Hours(24)).replayed);
}

TEST(RequestIdTest, ADeletedJobIsNotMadeAgain) {
  TestStore store;
  CreateWith(store, "a", "r", 1);
  ASSERT_TRUE(store->DeleteJob("jobs/a").ok());
  const RequestId request{"r", 1, TestTime()};
  EXPECT_EQ(ReasonOf(store->CreateJob(jobs::QueuedJob(TestJob("a"), TestTime()), request).status()),
            Reason::kJobNotFound);
  store.Create("a");  // The name's next owner is not the answer either.
  v1::Job other = TestJob("a");
  other.set_uid("uid-other");
  ASSERT_TRUE(store->DeleteJob("jobs/a").ok());
  ASSERT_TRUE(store->CreateJob(jobs::QueuedJob(other, TestTime()), {}).ok());
  EXPECT_EQ(ReasonOf(store->CreateJob(jobs::QueuedJob(TestJob("a"), TestTime()), request).status()),
            Reason::kJobNotFound);
}

TEST(RequestIdTest, ARefusedCreationDoesNotUseItUp) {
  TestStore store;
  store.Create("a");
  const RequestId request{"r", 1, TestTime()};
  v1::Job taken = TestJob("a");
  taken.set_uid("another-uid");
  EXPECT_EQ(ReasonOf(store->CreateJob(jobs::QueuedJob(taken, TestTime()), request).status()),
            Reason::kJobExists);
  EXPECT_FALSE(CreateWith(store, "b", "r", 1).replayed);
}

TEST(RequestIdTest, WithoutOneEachCallIsAJob) {
  TestStore store;
  store.Create("a");
  store.Create("b");
  EXPECT_THAT(store->ListJobs({})->jobs, SizeIs(2));
}

TEST(RequestIdTest, FiftyParallelCallsMakeOneJob) {
  TestStore store;
  std::vector<std::thread> callers;
  std::vector<std::string> names(50);
  std::vector<int> replayed(50);
  for (size_t i = 0; i < names.size(); ++i) {
    callers.emplace_back([&, i] {
      const CreateResult result = CreateWith(store, absl::StrCat("j", i), "r", 1);
      names[i] = result.job.name();
      replayed[i] = result.replayed ? 1 : 0;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_THAT(std::set<std::string>(names.begin(), names.end()), SizeIs(1));
  EXPECT_EQ(std::count(replayed.begin(), replayed.end(), 0), 1);
  EXPECT_THAT(store->ListJobs({})->jobs, SizeIs(1));
}

// --- Commit

TEST(CommitTest, NumbersEventsWithoutGaps) {
  TestStore store;
  JobRecord record{store.Create("a"), {}};
  record = CommitTo(store, record, *jobs::PlaceJob(record, {"at-1", "n", {"cpu0"}}, TestTime()));
  const auto reports = jobs::ApplyReports(
      record, "at-1", 1, {StepReport(1, 1), StepReport(2, 2), StepReport(3, 3)}, TestTime());
  record = CommitTo(store, record, **reports);
  EXPECT_EQ(record.job.last_sequence(), 6);
  EXPECT_THAT(Sequences(*store->ReadEvents("uid-a", 0, 100)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Sequences(*store->ReadEvents("uid-a", 3, 2)), ElementsAre(4, 5));
  EXPECT_THAT(*store->ReadEvents("uid-a", 6, 100), IsEmpty());
}

TEST(CommitTest, EachChangeIsARevision) {
  TestStore store;
  JobRecord record{store.Create("a"), {}};
  record = CommitTo(store, record, *jobs::Waits(record, "why", TestTime()));
  EXPECT_EQ(record.job.revision(), 2);
  EXPECT_EQ(record.job.etag(), "\"r2\"");
  EXPECT_EQ(record.job.last_sequence(), 1);
  EXPECT_EQ(store->GetJob("jobs/a")->job.DebugString(), record.job.DebugString());
}

TEST(CommitTest, AStaleCopyCannotTurnTheNumbersBack) {
  TestStore store;
  const JobRecord stale{store.Create("a"), {}};
  CommitTo(store, stale, *jobs::PlaceJob(stale, {"at-1", "n", {"cpu0"}}, TestTime()));
  const absl::StatusOr<v1::Job> job = store->Commit(*jobs::Waits(stale, "why", TestTime()));
  EXPECT_EQ(job->revision(), 3);
  EXPECT_EQ(job->last_sequence(), 2);
}

TEST(CommitTest, AttemptsAreKeptInOrderAndReplacedByNumber) {
  TestStore store;
  JobRecord record{store.Create("a"), {}};
  const absl::Status lost = Error(absl::StatusCode::kUnavailable, Reason::kWorkerLost, "lost");
  for (const char* uid : {"at-1", "at-2"}) {
    record = CommitTo(store, record, *jobs::PlaceJob(record, {uid, "n", {"cpu0"}}, TestTime()));
    record = CommitTo(store, record, jobs::WorkerLaunched(record, {7, 8, "boot"}, TestTime()));
    record = CommitTo(store, record, **jobs::AttemptLost(record, lost, TestTime()));
  }
  const auto stored = store->GetJob("jobs/a");
  ASSERT_THAT(stored->attempts, SizeIs(2));
  EXPECT_EQ(stored->attempts[0].DebugString(), record.attempts[0].DebugString());
  EXPECT_EQ(stored->attempts[1].DebugString(), record.attempts[1].DebugString());
  EXPECT_EQ(stored->attempts[1].pid(), 7);
  EXPECT_TRUE(stored->attempts[1].ended());
}

TEST(CommitTest, AnUnknownJobIsRefused) {
  TestStore store;
  const absl::Status status = store->Commit(jobs::QueuedJob(TestJob("a"), TestTime())).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), Reason::kJobNotFound);
}

TEST(CommitTest, ParallelChangesOfOneJobGetOneDenseSequence) {
  TestStore store;
  const JobRecord record{store.Create("a"), {}};
  const JobRecord placed =
      CommitTo(store, record, *jobs::PlaceJob(record, {"at-1", "n", {"cpu0"}}, TestTime()));
  const auto change = jobs::ApplyReports(placed, "at-1", 1, {StepReport(1, 1)}, TestTime());
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&] {
      for (int j = 0; j < 20; ++j) EXPECT_TRUE(store->Commit(**change).ok());
    });
  }
  for (std::thread& writer : writers) writer.join();
  const auto events = store->ReadEvents("uid-a", 0, 10'000);
  ASSERT_THAT(*events, SizeIs(2 + 8 * 20 * 2));
  for (size_t i = 0; i < events->size(); ++i) {
    ASSERT_EQ((*events)[i].sequence(), static_cast<int64_t>(i) + 1);
  }
  EXPECT_EQ(store->GetJob("jobs/a")->job.revision(), 2 + 8 * 20);
}

// --- GetJob, DeleteJob, LoadActiveJobs, CountJobs, ReadEvents

TEST(GetJobTest, AnUnknownNameIsToldApart) {
  TestStore store;
  const absl::Status status = store->GetJob("jobs/none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MetadataOf(status, "job"), "jobs/none");
  EXPECT_EQ(status.message(), "no job `jobs/none`; `job list` shows what there is");
}

TEST(DeleteJobTest, TakesEverythingOfTheJobAndNothingElse) {
  TestStore store;
  JobRecord record{store.Create("a"), {}};
  CommitTo(store, record, *jobs::PlaceJob(record, {"at-1", "n", {"cpu0"}}, TestTime()));
  store.Create("b");
  ASSERT_TRUE(store->DeleteJob("jobs/a").ok());
  EXPECT_EQ(ReasonOf(store->GetJob("jobs/a").status()), Reason::kJobNotFound);
  EXPECT_EQ(ReasonOf(store->ReadEvents("uid-a", 0, 10).status()), Reason::kJobNotFound);
  EXPECT_TRUE(store->GetJob("jobs/b").ok());
  EXPECT_THAT(*store->ReadEvents("uid-b", 0, 10), SizeIs(1));
  EXPECT_EQ(ReasonOf(store->DeleteJob("jobs/a")), Reason::kJobNotFound);
  store.Create("a");
  EXPECT_THAT(store->GetJob("jobs/a")->attempts, IsEmpty());
}

TEST(LoadActiveJobsTest, GivesWhatARestartMustGoOnWithOldestFirst) {
  TestStore store;
  JobRecord young{store.Create("young", TestTime(9)), {}};
  JobRecord old{store.Create("old", TestTime(1)), {}};
  JobRecord ended{store.Create("ended", TestTime(5)), {}};
  CommitTo(store, ended, *jobs::RequestCancel(ended, TestTime(6)));
  CommitTo(store, young, *jobs::PlaceJob(young, {"at-1", "n", {"cpu0"}}, TestTime(9)));
  store.Reopen();
  const auto active = store->LoadActiveJobs();
  ASSERT_THAT(*active, SizeIs(2));
  EXPECT_EQ((*active)[0].job.name(), "jobs/old");
  EXPECT_EQ((*active)[1].job.name(), "jobs/young");
  EXPECT_THAT((*active)[1].attempts, SizeIs(1));
}

TEST(CountJobsTest, CountsByState) {
  TestStore store;
  EXPECT_THAT(*store->CountJobs(), IsEmpty());
  store.Create("a");
  store.Create("b");
  JobRecord record{store.Create("c"), {}};
  CommitTo(store, record, *jobs::RequestCancel(record, TestTime()));
  const std::map<v1::Job::State, int64_t> expected = {{v1::Job::QUEUED, 2},
                                                      {v1::Job::CANCELLED, 1}};
  EXPECT_EQ(*store->CountJobs(), expected);
}

// --- Disk full, restart

TEST(DiskFullTest, RefusesTheChangeAndKeepsTheRest) {
  TestStore store(/*max_pages=*/40);
  std::vector<std::string> stored;
  absl::Status status;
  for (int i = 0; status.ok() && i < 1000; ++i) {
    v1::Job job = TestJob(absl::StrCat("j", i));
    job.set_display_name(std::string(2000, 'x'));
    status = store->CreateJob(jobs::QueuedJob(job, TestTime(i)), {}).status();
    if (status.ok()) stored.push_back(job.name());
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kDiskFull);
  EXPECT_EQ(MetadataOf(status, "path"), store.path());
  ASSERT_FALSE(stored.empty());
  EXPECT_THAT(store->ListJobs({1000, "", {}, {}})->jobs, SizeIs(stored.size()));
  // A deletion makes room again.
  for (const std::string& name : stored) EXPECT_TRUE(store->DeleteJob(name).ok());
  EXPECT_TRUE(store->CreateJob(jobs::QueuedJob(TestJob("last"), TestTime()), {}).ok());
}

TEST(RestartTest, EverythingIsStillThere) {
  TestStore store;
  JobRecord record{store.Create("a"), {}};
  record = CommitTo(store, record, *jobs::PlaceJob(record, {"at-1", "n", {"cpu0"}}, TestTime()));
  const auto events = store->ReadEvents("uid-a", 0, 10);
  store.Reopen();
  EXPECT_EQ(store->GetJob("jobs/a")->job.DebugString(), record.job.DebugString());
  const auto again = store->ReadEvents("uid-a", 0, 10);
  ASSERT_EQ(again->size(), events->size());
  for (size_t i = 0; i < events->size(); ++i) {
    EXPECT_EQ((*again)[i].DebugString(), (*events)[i].DebugString());
  }
}

}  // namespace
}  // namespace traind::store
