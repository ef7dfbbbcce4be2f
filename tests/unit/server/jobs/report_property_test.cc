// What must hold for the reports of any run, however they are cut into batches, sent twice, or
// interrupted. The seed is in each message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "server/jobs/job_changes.h"
#include "server/jobs/job_state.h"
#include "tests/support/test_jobs.h"

namespace traind::jobs {
namespace {

using worker::v1::Finished;
using worker::v1::Report;

constexpr unsigned kFirstSeed = 20240801;
constexpr unsigned kSeeds = 300;

int Pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// A report between the start and the end of a run.
Report MiddleReport(std::mt19937& random, int64_t number, int64_t* step) {
  Report report = NumberedReport(number);
  switch (Pick(random, 0, 5)) {
    case 0:
      report.mutable_eval()->set_loss(Pick(random, 1, 50));
      return report;
    case 1:
      report.mutable_checkpoint()->set_step(*step);
      return report;
    case 2:
      report.mutable_sample()->set_step(*step);
      return report;
    case 3:
      report.mutable_notice()->set_message("careful");
      return report;
    default:
      *step += Pick(random, 1, 3);
      return StepReport(number, *step, Pick(random, 1, 50));
  }
}

// Every report of one run, from the first phase to the end.
std::vector<Report> RandomRun(unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Report> reports;
  const auto next = [&reports] { return static_cast<int64_t>(reports.size()) + 1; };
  for (const auto phase : {v1::Attempt::LOADING_DATA, v1::Attempt::LOADING_MODEL}) {
    Report report = NumberedReport(next());
    report.set_phase(phase);
    reports.push_back(report);
  }
  Report plan = NumberedReport(next());
  plan.mutable_plan()->set_total_steps(10);
  reports.push_back(plan);
  int64_t step = 0;
  const int middle = Pick(random, 0, 20);
  for (int i = 0; i < middle; ++i) reports.push_back(MiddleReport(random, next(), &step));
  const std::vector<Finished::Result> ends = {Finished::SUCCEEDED, Finished::FAILED,
                                              Finished::STOPPED};
  reports.push_back(FinishedReport(next(), ends[static_cast<size_t>(Pick(random, 0, 2))]));
  return reports;
}

// The job and everything that its watchers saw.
struct Outcome {
  JobRecord record = PlacedRecord(QueuedRecord("a"));
  std::vector<v1::Event> events;

  void Send(const std::vector<Report>& reports) {
    const auto update = ApplyReports(record, "attempt-1", 1, reports, TestTime(9));
    ASSERT_TRUE(update.ok()) << update.status();
    if (!update->has_value()) return;
    events.insert(events.end(), (*update)->events.begin(), (*update)->events.end());
    record = After(record, **update);
  }
  // Everything but the number of commits that it took.
  std::string Text() const {
    v1::Job job = record.job;
    job.clear_revision();
    std::string text = absl::StrCat(job.DebugString(), record.attempts[0].DebugString());
    for (const v1::Event& event : events) absl::StrAppend(&text, event.DebugString(), "--\n");
    return text;
  }
};

// Cuts the reports at random places, and goes back by a few before each batch as a worker does
// whose connection broke before the answer came.
Outcome SendInPieces(const std::vector<Report>& reports, std::mt19937& random, int go_back) {
  Outcome outcome;
  size_t sent = 0;
  while (sent < reports.size()) {
    const size_t from = sent - std::min(sent, static_cast<size_t>(Pick(random, 0, go_back)));
    sent = std::min(reports.size(), sent + static_cast<size_t>(Pick(random, 1, 5)));
    const auto begin = reports.begin() + static_cast<int64_t>(from);
    outcome.Send({begin, reports.begin() + static_cast<int64_t>(sent)});
  }
  return outcome;
}

template <typename Check>
void ForEachRun(const Check& check) {
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    check(RandomRun(seed), random);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ReportPropertyTest, HowReportsAreCutIntoBatchesDoesNotMatter) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937& random) {
    Outcome whole;
    whole.Send(run);
    EXPECT_EQ(SendInPieces(run, random, 0).Text(), whole.Text());
  });
}

TEST(ReportPropertyTest, ReportsThatAreSentAgainCountOnce) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937& random) {
    Outcome whole;
    whole.Send(run);
    EXPECT_EQ(SendInPieces(run, random, 6).Text(), whole.Text());
  });
}

TEST(ReportPropertyTest, EachReportMakesItsEventsInOrder) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937&) {
    Outcome outcome;
    outcome.Send(run);
    int64_t newest = 0;
    for (const v1::Event& event : outcome.events) {
      EXPECT_GE(event.time().seconds(), newest);
      EXPECT_EQ(event.attempt(), 1);
      newest = event.time().seconds();
    }
    EXPECT_EQ(outcome.record.attempts[0].acknowledged_report(), static_cast<int64_t>(run.size()));
  });
}

TEST(ReportPropertyTest, EveryStepOfTheRunIsAnEventExactlyOnce) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937& random) {
    std::vector<int64_t> reported;
    for (const Report& report : run) {
      if (report.has_step()) reported.push_back(report.step().step());
    }
    std::vector<int64_t> seen;
    for (const v1::Event& event : SendInPieces(run, random, 4).events) {
      if (event.has_step()) seen.push_back(event.step().step());
    }
    EXPECT_EQ(seen, reported);
  });
}

TEST(ReportPropertyTest, ProgressIsThatOfTheNewestStep) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937&) {
    Outcome outcome;
    outcome.Send(run);
    int64_t tokens = 0;
    int64_t step = 0;
    for (const Report& report : run) {
      if (!report.has_step()) continue;
      tokens += report.step().tokens();
      step = report.step().step();
    }
    EXPECT_EQ(outcome.record.job.progress().step(), step);
    EXPECT_EQ(outcome.record.job.attempt().step(), step);
    EXPECT_EQ(outcome.record.job.progress().tokens(), tokens);
    EXPECT_EQ(outcome.record.job.progress().total_steps(), 10);
  });
}

TEST(ReportPropertyTest, ARunEndsAsItsLastReportSays) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937&) {
    Outcome outcome;
    outcome.Send(run);
    const bool stepped =
        std::any_of(run.begin(), run.end(), [](const Report& report) { return report.has_step(); });
    const v1::Job& job = outcome.record.job;
    switch (run.back().finished().result()) {
      case Finished::SUCCEEDED:
        EXPECT_EQ(job.state(), v1::Job::SUCCEEDED);
        break;
      case Finished::FAILED:
        EXPECT_EQ(job.state(), v1::Job::FAILED);
        break;
      default:
        EXPECT_EQ(job.state(), stepped ? v1::Job::RUNNING : v1::Job::STARTING);
    }
    EXPECT_EQ(job.has_end_time(), IsTerminal(job.state()));
    EXPECT_EQ(job.has_error(), job.state() == v1::Job::FAILED);
    EXPECT_TRUE(outcome.record.attempts[0].ended());
  });
}

// The worker dies somewhere in between; the next attempt begins again with its report 1.
TEST(ReportPropertyTest, ALostWorkerLosesNothingThatWasCommitted) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937& random) {
    Outcome outcome;
    const int sent = Pick(random, 0, static_cast<int>(run.size()) - 1);
    outcome.Send({run.begin(), run.begin() + sent});
    const v1::Progress before = outcome.record.job.progress();
    const absl::Status lost = Error(absl::StatusCode::kUnavailable, Reason::kWorkerLost, "lost");
    outcome.record = After(outcome.record, **AttemptLost(outcome.record, lost, TestTime(10)));
    EXPECT_EQ(outcome.record.job.state(), v1::Job::QUEUED);
    EXPECT_EQ(outcome.record.job.progress().DebugString(), before.DebugString());
    EXPECT_EQ(outcome.record.attempts[0].acknowledged_report(), sent);
    outcome.record = PlacedRecord(outcome.record);
    EXPECT_EQ(outcome.record.attempts[1].acknowledged_report(), 0);
    const auto first = ApplyReports(outcome.record, "attempt-2", 2, {run[0]}, TestTime(11));
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ((*first)->attempt->number(), 2);
    EXPECT_EQ((*first)->events.back().attempt(), 2);
    EXPECT_EQ(ReasonOf(ApplyReports(outcome.record, "attempt-1", 1, run, TestTime(11)).status()),
              Reason::kAttemptFenced);
  });
}

// A user cancels somewhere in between: what the worker still says is kept, and the job ends as
// cancelled unless it had succeeded anyway.
TEST(ReportPropertyTest, ACancelInBetweenKeepsWhatComesAfterIt) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937& random) {
    Outcome outcome;
    const int sent = Pick(random, 0, static_cast<int>(run.size()) - 1);
    outcome.Send({run.begin(), run.begin() + sent});
    outcome.record = After(outcome.record, *RequestCancel(outcome.record, TestTime(10)));
    outcome.Send({run.begin() + sent, run.end()});
    for (const v1::Event& event : outcome.events) {
      EXPECT_TRUE(!event.has_state_change() || event.state_change().to() != v1::Job::FAILED);
    }
    const auto gone = AttemptLost(outcome.record, absl::OkStatus(), TestTime(12));
    ASSERT_TRUE(gone.ok()) << gone.status();
    if (gone->has_value()) outcome.record = After(outcome.record, **gone);
    const bool succeeded = run.back().finished().result() == Finished::SUCCEEDED;
    EXPECT_EQ(outcome.record.job.state(), succeeded ? v1::Job::SUCCEEDED : v1::Job::CANCELLED);
    EXPECT_EQ(outcome.record.attempts[0].acknowledged_report(), static_cast<int64_t>(run.size()));
  });
}

// Any single report that is left out is noticed, and nothing of the batch is taken.
TEST(ReportPropertyTest, AGapIsAlwaysNoticed) {
  ForEachRun([](const std::vector<Report>& run, std::mt19937& random) {
    std::vector<Report> holed = run;
    const int hole = Pick(random, 0, static_cast<int>(run.size()) - 2);
    holed.erase(holed.begin() + hole);
    const JobRecord record = PlacedRecord(QueuedRecord("a"));
    const absl::Status status = ApplyReports(record, "attempt-1", 1, holed, TestTime()).status();
    EXPECT_EQ(ReasonOf(status), Reason::kSequenceOutOfRange);
    EXPECT_EQ(MetadataOf(status, "expected"), absl::StrCat(hole + 1));
    EXPECT_EQ(MetadataOf(status, "got"), absl::StrCat(hole + 2));
  });
}

}  // namespace
}  // namespace traind::jobs
