// A process that dies while it commits: what it acknowledged is there, what it did not is there as
// a whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/os/subprocess.h"
#include "common/status/errors.h"
#include "server/store/sqlite_job_store.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_jobs.h"

namespace traind::store {
namespace {

constexpr int kJobs = 3;
constexpr int kCallsPerJob = 3;  // Create, place, report.
constexpr int kKilled = 137;

// Sequence numbers that the job has after each of its calls.
constexpr int64_t kSequenceAfterCall[] = {0, 1, 2, 5};

class StoreCrashTest : public testing::Test {
 protected:
  // Runs the helper with this fault and returns its exit code.
  int RunHelper(const std::string& fault) {
    SubprocessOptions options;
    options.argv = {STORE_CRASH_HELPER, Path(), absl::StrCat(kJobs)};
    options.environment = {{"TRAIND_FAULT", fault}};
    options.output_path = folder_.File("output");
    auto process = Subprocess::Start(options);
    EXPECT_TRUE(process.ok()) << process.status();
    const std::optional<ExitState> end = process->Wait(absl::Minutes(1));
    EXPECT_TRUE(end.has_value());
    EXPECT_EQ(end->kind, ExitState::Kind::kExited);
    return end->value;
  }

  // Newest acknowledged revision by uid.
  std::map<std::string, int64_t> Acknowledged() const {
    std::map<std::string, int64_t> revisions;
    const std::string output = ReadFile(folder_.File("output")).value_or("");
    for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipEmpty())) {
      const std::pair<std::string, std::string> parts = absl::StrSplit(line, ' ');
      EXPECT_TRUE(absl::SimpleAtoi(parts.second, &revisions[parts.first]));
    }
    return revisions;
  }

  std::unique_ptr<SqliteJobStore> Open() {
    auto store = SqliteJobStore::Open({Path(), absl::Seconds(5), 0});
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

  std::string Path() const { return folder_.File("traind.db"); }

  TempDir folder_;
};

// How many calls of the job are in the store; each must be there as a whole.
int CallsStored(SqliteJobStore& store, const std::string& name, const std::string& uid) {
  const absl::StatusOr<JobRecord> record = store.GetJob(name);
  if (!record.ok()) {
    EXPECT_EQ(ReasonOf(record.status()), Reason::kJobNotFound);
    EXPECT_EQ(ReasonOf(store.ReadEvents(uid, 0, 100).status()), Reason::kJobNotFound);
    return 0;
  }
  const auto calls = static_cast<int>(record->job.revision());
  const absl::StatusOr<std::vector<v1::Event>> events = store.ReadEvents(uid, 0, 100);
  EXPECT_EQ(static_cast<int64_t>(events->size()), kSequenceAfterCall[calls]);
  for (size_t i = 0; i < events->size(); ++i) {
    EXPECT_EQ((*events)[i].sequence(), static_cast<int64_t>(i) + 1);
  }
  EXPECT_EQ(record->job.last_sequence(), kSequenceAfterCall[calls]);
  EXPECT_EQ(record->attempts.size(), calls >= 2 ? 1u : 0u);
  const v1::Job::State states[] = {v1::Job::STATE_UNSPECIFIED, v1::Job::QUEUED, v1::Job::STARTING,
                                   v1::Job::RUNNING};
  EXPECT_EQ(record->job.state(), states[calls]);
  EXPECT_TRUE(calls < 3 || record->attempts[0].acknowledged_report() == 2);
  return calls;
}

int TotalStored(SqliteJobStore& store) {
  int calls = 0;
  for (int number = 1; number <= kJobs; ++number) {
    calls += CallsStored(store, absl::StrCat("jobs/j", number), absl::StrCat("uid-j", number));
  }
  return calls;
}

int Total(const std::map<std::string, int64_t>& revisions) {
  int64_t total = 0;
  for (const auto& [uid, revision] : revisions) total += revision;
  return static_cast<int>(total);
}

TEST_F(StoreCrashTest, DeathBeforeTheCommitLosesOnlyWhatWasNotAnswered) {
  for (int commit = 1; commit <= kJobs * kCallsPerJob; ++commit) {
    SCOPED_TRACE(testing::Message() << "commit " << commit);
    ASSERT_TRUE(RemoveAll(Path()).ok() && RemoveAll(folder_.File("output")).ok());
    ASSERT_TRUE(RemoveAll(Path() + "-wal").ok() && RemoveAll(Path() + "-shm").ok());
    ASSERT_EQ(RunHelper(absl::StrCat("store.before_commit:exit@", commit)), kKilled);
    const int acknowledged = Total(Acknowledged());
    EXPECT_EQ(acknowledged, commit - 1);
    EXPECT_EQ(TotalStored(*Open()), acknowledged);
  }
}

TEST_F(StoreCrashTest, DeathAfterTheCommitKeepsWhatWasNotAnswered) {
  for (int commit = 1; commit <= kJobs * kCallsPerJob; ++commit) {
    SCOPED_TRACE(testing::Message() << "commit " << commit);
    ASSERT_TRUE(RemoveAll(Path()).ok() && RemoveAll(folder_.File("output")).ok());
    ASSERT_TRUE(RemoveAll(Path() + "-wal").ok() && RemoveAll(Path() + "-shm").ok());
    ASSERT_EQ(RunHelper(absl::StrCat("store.after_commit:exit@", commit)), kKilled);
    const int acknowledged = Total(Acknowledged());
    EXPECT_EQ(acknowledged, commit - 1);
    EXPECT_EQ(TotalStored(*Open()), acknowledged + 1);
  }
}

// The client got no answer and asks again with the same request id.
TEST_F(StoreCrashTest, ARetryAfterALostAnswerFindsItsJob) {
  ASSERT_EQ(RunHelper("store.after_commit:exit@1"), kKilled);
  const auto store = Open();
  const RequestId request{"request-1", 7, TestTime()};
  const auto again = store->CreateJob(jobs::QueuedJob(TestJob("another"), TestTime()), request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(again->job.name(), "jobs/j1");
  EXPECT_THAT(store->ListJobs({})->jobs, testing::SizeIs(1));
}

TEST_F(StoreCrashTest, ARetryAfterALostRequestMakesTheJob) {
  ASSERT_EQ(RunHelper("store.before_commit:exit@1"), kKilled);
  const auto store = Open();
  const RequestId request{"request-1", 7, TestTime()};
  const auto again = store->CreateJob(jobs::QueuedJob(TestJob("j1"), TestTime()), request);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->replayed);
}

TEST_F(StoreCrashTest, ADiskThatIsFullAtTheCommitIsAnAnswerNotACrash) {
  ASSERT_EQ(RunHelper("store.before_commit:enospc@2"), 4);
  EXPECT_EQ(Total(Acknowledged()), 1);
  EXPECT_EQ(TotalStored(*Open()), 1);
}

TEST_F(StoreCrashTest, WithoutAFaultEverythingIsThere) {
  ASSERT_EQ(RunHelper(""), 0);
  EXPECT_EQ(Total(Acknowledged()), kJobs * kCallsPerJob);
  EXPECT_EQ(TotalStored(*Open()), kJobs * kCallsPerJob);
}

// A daemon that dies again and again while it starts up: the database goes on being usable.
TEST_F(StoreCrashTest, ManyCrashesInARowDoNoHarm) {
  for (int crash = 0; crash < 10; ++crash) {
    ASSERT_EQ(RunHelper("store.before_commit:exit@1"), kKilled);
  }
  ASSERT_EQ(RunHelper(""), 0);
  EXPECT_EQ(TotalStored(*Open()), kJobs * kCallsPerJob);
}

}  // namespace
}  // namespace traind::store
