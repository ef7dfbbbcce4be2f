// Random operations on the store and on plain maps; both must always tell the same, also after the
// store was closed and opened again.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "server/jobs/job_state.h"
#include "tests/support/test_store.h"

namespace traind::store {
namespace {

struct ModelJob {
  JobRecord record;
  std::vector<v1::Event> events;
};

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {}

  void DoSomething() {
    switch (Pick(0, 9)) {
      case 0:
      case 1:
      case 2:
        return Create();
      case 3:
      case 4:
      case 5:
      case 6:
        return Change();
      case 7:
        return Delete();
      case 8:
        return Check();
      default:
        return store_.Reopen();
    }
  }

  void Check() {
    for (const auto& [name, job] : jobs_) CheckJob(name, job);
    CheckList();
    CheckCounts();
    CheckActive();
  }

 private:
  int Pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void Create() {
    const std::string id = absl::StrCat("j", Pick(0, 30));
    v1::Job job = TestJob(id);
    job.set_uid(absl::StrCat("uid-", id, "-", ++uids_));
    (*job.mutable_labels())["mod"] = absl::StrCat(Pick(0, 2));
    const JobChange change = jobs::QueuedJob(job, TestTime(Pick(0, 5)));
    const absl::StatusOr<CreateResult> result = store_->CreateJob(change, {});
    if (jobs_.count(job.name()) > 0) {
      ASSERT_EQ(ReasonOf(result.status()), Reason::kJobExists);
      return;
    }
    ASSERT_TRUE(result.ok()) << result.status();
    Remember(change, jobs_[job.name()]);
  }

  void Change() {
    if (jobs_.empty()) return;
    auto chosen = std::next(jobs_.begin(), Pick(0, static_cast<int>(jobs_.size()) - 1));
    ModelJob& job = chosen->second;
    const std::optional<JobChange> change = RandomChange(job.record);
    if (!change) return;
    const absl::StatusOr<v1::Job> stored = store_->Commit(*change);
    ASSERT_TRUE(stored.ok()) << stored.status();
    Remember(*change, job);
    ASSERT_EQ(stored->DebugString(), job.record.job.DebugString());
  }

  std::optional<JobChange> RandomChange(const JobRecord& record) {
    if (Pick(0, 9) == 0) return jobs::RequestCancel(record, TestTime());
    if (record.job.state() == v1::Job::QUEUED) {
      return *jobs::PlaceJob(record, {absl::StrCat("at-", ++uids_), "n", {"cpu0"}}, TestTime());
    }
    if (jobs::IsTerminal(record.job.state())) return std::nullopt;
    if (Pick(0, 3) == 0) {
      const absl::Status why = Error(absl::StatusCode::kUnavailable, Reason::kWorkerLost, "lost");
      return *jobs::AttemptLost(record, why, TestTime());
    }
    const storage::v1::AttemptRecord& attempt = record.attempts.back();
    std::vector<worker::v1::Report> reports;
    for (int i = 1; i <= Pick(1, 4); ++i) {
      reports.push_back(StepReport(attempt.acknowledged_report() + i, i));
    }
    return *jobs::ApplyReports(record, attempt.uid(), attempt.fencing_token(), reports, TestTime());
  }

  // What the store should make of the change.
  static void Remember(const JobChange& change, ModelJob& job) {
    v1::Job stored = change.job;
    int64_t sequence = job.record.job.last_sequence();
    for (v1::Event event : change.events) {
      event.set_sequence(++sequence);
      job.events.push_back(event);
    }
    stored.set_last_sequence(sequence);
    stored.set_revision(job.record.job.revision() + 1);
    stored.set_etag(absl::StrCat("\"r", stored.revision(), "\""));
    jobs::MergeUpdate(change, stored, job.record);
  }

  void Delete() {
    const std::string name = absl::StrCat("jobs/j", Pick(0, 30));
    ASSERT_EQ(store_->DeleteJob(name).ok(), jobs_.erase(name) > 0);
  }

  void CheckJob(const std::string& name, const ModelJob& job) {
    const absl::StatusOr<JobRecord> stored = store_->GetJob(name);
    ASSERT_TRUE(stored.ok()) << stored.status();
    ASSERT_EQ(stored->job.DebugString(), job.record.job.DebugString());
    ASSERT_EQ(stored->attempts.size(), job.record.attempts.size());
    for (size_t i = 0; i < stored->attempts.size(); ++i) {
      ASSERT_EQ(stored->attempts[i].DebugString(), job.record.attempts[i].DebugString());
    }
    const int64_t after = Pick(0, static_cast<int>(job.events.size()));
    const absl::StatusOr<std::vector<v1::Event>> events =
        store_->ReadEvents(job.record.job.uid(), after, 1000);
    ASSERT_TRUE(events.ok()) << events.status();
    ASSERT_EQ(events->size(), job.events.size() - static_cast<size_t>(after));
    for (size_t i = 0; i < events->size(); ++i) {
      ASSERT_EQ((*events)[i].DebugString(),
                job.events[i + static_cast<size_t>(after)].DebugString());
    }
  }

  // Names with this label, newest first.
  std::vector<std::string> ExpectedNames(const std::string& mod) const {
    std::vector<const v1::Job*> found;
    for (const auto& [name, job] : jobs_) {
      if (job.record.job.labels().at("mod") == mod) found.push_back(&job.record.job);
    }
    std::sort(found.begin(), found.end(), [](const v1::Job* a, const v1::Job* b) {
      return std::make_pair(a->create_time().seconds(), a->uid()) >
             std::make_pair(b->create_time().seconds(), b->uid());
    });
    std::vector<std::string> names;
    for (const v1::Job* job : found) names.push_back(job->name());
    return names;
  }

  void CheckList() {
    const std::string mod = absl::StrCat(Pick(0, 2));
    JobQuery query{Pick(1, 5), "", {}, {{"mod", mod}}};
    std::vector<std::string> names;
    do {
      const absl::StatusOr<JobPage> page = store_->ListJobs(query);
      ASSERT_TRUE(page.ok()) << page.status();
      for (const v1::Job& job : page->jobs) names.push_back(job.name());
      query.page_token = page->next_page_token;
    } while (!query.page_token.empty());
    ASSERT_EQ(names, ExpectedNames(mod));
  }

  void CheckCounts() {
    std::map<v1::Job::State, int64_t> expected;
    for (const auto& [name, job] : jobs_) ++expected[job.record.job.state()];
    ASSERT_EQ(*store_->CountJobs(), expected);
  }

  void CheckActive() {
    size_t expected = 0;
    for (const auto& [name, job] : jobs_) {
      expected += jobs::IsTerminal(job.record.job.state()) ? 0 : 1;
    }
    const auto active = store_->LoadActiveJobs();
    ASSERT_EQ(active->size(), expected);
    for (const JobRecord& record : *active) {
      ASSERT_EQ(record.attempts.size(), jobs_.at(record.job.name()).record.attempts.size());
    }
  }

  std::mt19937 random_;
  TestStore store_;
  std::map<std::string, ModelJob> jobs_;
  int uids_ = 0;
};

TEST(StoreModelTest, TellsTheSameAsPlainMaps) {
  for (const unsigned seed : {11u, 12u, 13u, 14u}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Model model(seed);
    for (int i = 0; i < 150; ++i) {
      model.DoSomething();
      if (testing::Test::HasFatalFailure()) return;
    }
    model.Check();
  }
}

}  // namespace
}  // namespace traind::store
