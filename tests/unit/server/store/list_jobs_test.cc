#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "server/store/page_token.h"
#include "tests/support/test_store.h"

namespace traind::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Names(const JobPage& page) {
  std::vector<std::string> names;
  for (const v1::Job& job : page.jobs) names.push_back(job.name());
  return names;
}

// Walks over all pages.
std::vector<std::string> AllNames(TestStore& store, JobQuery query) {
  std::vector<std::string> names;
  do {
    const absl::StatusOr<JobPage> page = store->ListJobs(query);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) break;
    for (const std::string& name : Names(*page)) names.push_back(name);
    query.page_token = page->next_page_token;
  } while (!query.page_token.empty());
  return names;
}

v1::Job Labelled(const std::string& id, const std::map<std::string, std::string>& labels) {
  v1::Job job = TestJob(id);
  job.mutable_labels()->insert(labels.begin(), labels.end());
  return job;
}

void Put(TestStore& store, const v1::Job& job) {
  ASSERT_TRUE(store->CreateJob(jobs::QueuedJob(job, TestTime()), {}).ok());
}

TEST(ListJobsTest, AnEmptyStoreHasOneEmptyPage) {
  TestStore store;
  const auto page = store->ListJobs({});
  EXPECT_THAT(page->jobs, IsEmpty());
  EXPECT_EQ(page->next_page_token, "");
}

TEST(ListJobsTest, NewestFirst) {
  TestStore store;
  store.Create("old", TestTime(1));
  store.Create("new", TestTime(3));
  store.Create("mid", TestTime(2));
  EXPECT_THAT(Names(*store->ListJobs({})), ElementsAre("jobs/new", "jobs/mid", "jobs/old"));
}

TEST(ListJobsTest, AThousandJobsOfOneMomentEachExactlyOnce) {
  TestStore store;
  std::set<std::string> expected;
  for (int i = 0; i < 1000; ++i) {
    expected.insert(store.Create(absl::StrCat("j", i), TestTime()).name());
  }
  for (const int page_size : {7, 333, 999, 1000}) {
    JobQuery query;
    query.page_size = page_size;
    const std::vector<std::string> names = AllNames(store, query);
    EXPECT_EQ(names.size(), expected.size()) << page_size;
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expected) << page_size;
  }
}

TEST(ListJobsTest, TheLastPageHasNoToken) {
  TestStore store;
  for (const char* id : {"a", "b", "c", "d"}) store.Create(id);
  EXPECT_EQ(store->ListJobs({4, "", {}, {}})->next_page_token, "");
  const auto first = store->ListJobs({2, "", {}, {}});
  ASSERT_NE(first->next_page_token, "");
  EXPECT_EQ(store->ListJobs({2, first->next_page_token, {}, {}})->next_page_token, "");
}

TEST(ListJobsTest, PageSizesHaveADefaultAndALimit) {
  TestStore store;
  for (int i = 0; i < 60; ++i) store.Create(absl::StrCat("j", i));
  EXPECT_THAT(store->ListJobs({0, "", {}, {}})->jobs, SizeIs(50));
  EXPECT_THAT(store->ListJobs({-5, "", {}, {}})->jobs, SizeIs(50));
  EXPECT_THAT(store->ListJobs({1'000'000, "", {}, {}})->jobs, SizeIs(60));
}

TEST(ListJobsTest, ATokenMayBeUsedWithAnotherPageSize) {
  TestStore store;
  for (const char* id : {"a", "b", "c", "d"}) store.Create(id);
  const auto first = store->ListJobs({1, "", {}, {}});
  EXPECT_THAT(Names(*store->ListJobs({3, first->next_page_token, {}, {}})),
              ElementsAre("jobs/c", "jobs/b", "jobs/a"));
}

TEST(ListJobsTest, JobsThatComeOrGoMoveNoOther) {
  TestStore store;
  for (int i = 0; i < 6; ++i) store.Create(absl::StrCat("j", i), TestTime(i));
  const auto first = store->ListJobs({2, "", {}, {}});
  EXPECT_THAT(Names(*first), ElementsAre("jobs/j5", "jobs/j4"));
  store.Create("newest", TestTime(100));
  ASSERT_TRUE(store->DeleteJob("jobs/j4").ok());  // The key of the token.
  ASSERT_TRUE(store->DeleteJob("jobs/j3").ok());
  EXPECT_THAT(Names(*store->ListJobs({2, first->next_page_token, {}, {}})),
              ElementsAre("jobs/j2", "jobs/j1"));
}

TEST(ListJobsTest, ATokenOutlivesARestart) {
  TestStore store;
  for (const char* id : {"a", "b", "c"}) store.Create(id);
  const std::string token = store->ListJobs({2, "", {}, {}})->next_page_token;
  store.Reopen();
  EXPECT_THAT(Names(*store->ListJobs({2, token, {}, {}})), ElementsAre("jobs/a"));
}

TEST(ListJobsTest, FiltersByState) {
  TestStore store;
  store.Create("a");
  const JobRecord record{store.Create("b"), {}};
  ASSERT_TRUE(store->Commit(*jobs::RequestCancel(record, TestTime())).ok());
  EXPECT_THAT(Names(*store->ListJobs({50, "", {v1::Job::QUEUED}, {}})), ElementsAre("jobs/a"));
  EXPECT_THAT(Names(*store->ListJobs({50, "", {v1::Job::CANCELLED}, {}})), ElementsAre("jobs/b"));
  EXPECT_THAT(Names(*store->ListJobs({50, "", {v1::Job::FAILED}, {}})), IsEmpty());
  EXPECT_THAT(store->ListJobs({50, "", {v1::Job::QUEUED, v1::Job::CANCELLED}, {}})->jobs,
              SizeIs(2));
}

TEST(ListJobsTest, FiltersByAllLabels) {
  TestStore store;
  Put(store, Labelled("a", {{"team", "x"}, {"kind", "lora"}}));
  Put(store, Labelled("b", {{"team", "x"}}));
  Put(store, Labelled("c", {{"team", "y"}, {"kind", "lora"}}));
  EXPECT_THAT(Names(*store->ListJobs({50, "", {}, {{"team", "x"}}})),
              ElementsAre("jobs/b", "jobs/a"));
  EXPECT_THAT(Names(*store->ListJobs({50, "", {}, {{"team", "x"}, {"kind", "lora"}}})),
              ElementsAre("jobs/a"));
  EXPECT_THAT(Names(*store->ListJobs({50, "", {}, {{"team", "z"}}})), IsEmpty());
  EXPECT_THAT(Names(*store->ListJobs({50, "", {}, {{"team", "x' OR '1'='1"}}})), IsEmpty());
}

TEST(ListJobsTest, ChangedLabelsAreFound) {
  TestStore store;
  Put(store, Labelled("a", {{"team", "x"}}));
  JobChange change{store->GetJob("jobs/a")->job, std::nullopt, {}};
  (*change.job.mutable_labels())["team"] = "y";
  ASSERT_TRUE(store->Commit(change).ok());
  EXPECT_THAT(Names(*store->ListJobs({50, "", {}, {{"team", "x"}}})), IsEmpty());
  EXPECT_THAT(Names(*store->ListJobs({50, "", {}, {{"team", "y"}}})), ElementsAre("jobs/a"));
}

TEST(ListJobsTest, FiltersAndPagesTogether) {
  TestStore store;
  std::set<std::string> expected;
  for (int i = 0; i < 90; ++i) {
    const v1::Job job = Labelled(absl::StrCat("j", i), {{"mod", absl::StrCat(i % 3)}});
    Put(store, job);
    if (i % 3 == 1) expected.insert(job.name());
  }
  JobQuery query{7, "", {v1::Job::QUEUED, v1::Job::RUNNING}, {{"mod", "1"}}};
  const std::vector<std::string> names = AllNames(store, query);
  EXPECT_EQ(names.size(), expected.size());
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), expected);
}

TEST(ListJobsTest, ATokenOfAnotherQueryIsRefused) {
  TestStore store;
  for (const char* id : {"a", "b", "c"}) store.Create(id);
  const std::string token = store->ListJobs({1, "", {}, {}})->next_page_token;
  for (const JobQuery& query :
       {JobQuery{1, token, {v1::Job::QUEUED}, {}}, JobQuery{1, token, {}, {{"team", "x"}}}}) {
    const absl::Status status = store->ListJobs(query).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), Reason::kBadPageToken);
  }
}

TEST(ListJobsTest, GarbageIsRefusedAndNothingBreaks) {
  TestStore store;
  store.Create("a");
  const uint64_t hash = HashQuery({});
  std::vector<std::string> tokens = {"x",
                                     "!!!",
                                     "AAAA",
                                     std::string(100'000, 'A'),
                                     std::string("\0\xff", 2),
                                     EncodePageToken("no key", hash),
                                     EncodePageToken("", hash),
                                     EncodePageToken("99999999999999999999/u", hash)};
  for (const std::string& token : tokens) {
    const absl::Status status = store->ListJobs({10, token, {}, {}}).status();
    EXPECT_EQ(ReasonOf(status), Reason::kBadPageToken) << token.substr(0, 40);
  }
  EXPECT_TRUE(store->ListJobs({}).ok());
}

}  // namespace
}  // namespace traind::store
