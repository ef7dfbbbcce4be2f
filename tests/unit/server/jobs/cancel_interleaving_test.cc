// Cancel against start, finish, loss and restart: what a user was told must stay true in every
// order of what happens.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/status/errors.h"
#include "server/jobs/job_changes.h"
#include "server/jobs/job_state.h"
#include "tests/support/test_jobs.h"

namespace traind::jobs {
namespace {

using worker::v1::Finished;

// A job with its whole history, as the store would keep it.
class History {
 public:
  History() { Commit(QueuedJob(TestJob("a"), TestTime())); }

  void Place() {
    const auto update = PlaceJob(record_, {NextUid(), "nodes/local", {"cpu0"}}, TestTime());
    if (update.ok()) Commit(*update);
    if (update.ok() && cancel_asked_) started_after_cancel_ = true;
  }
  void Step() { Report(StepReport(NextReport(), ++step_)); }
  void Finish(Finished::Result result) { Report(FinishedReport(NextReport(), result)); }
  void Lose() {
    const absl::Status why = Error(absl::StatusCode::kUnavailable, Reason::kWorkerLost, "lost");
    Commit(*AttemptLost(record_, why, TestTime()));
  }
  void Cancel() {
    cancel_asked_ = true;
    Commit(RequestCancel(record_, TestTime()));
  }
  // A worker of an earlier attempt, or of this one with a wrong token, speaks up.
  void Intrude(int64_t token) {
    const auto update = ApplyReports(record_, "attempt-0", token,
                                     {FinishedReport(1, Finished::SUCCEEDED)}, TestTime());
    EXPECT_EQ(ReasonOf(update.status()), Reason::kAttemptFenced);
  }

  v1::Job::State state() const { return record_.job.state(); }
  const std::vector<std::pair<v1::Job::State, v1::Job::State>>& moves() const { return moves_; }
  bool started_after_cancel() const { return started_after_cancel_; }

 private:
  std::string NextUid() const { return absl::StrCat("attempt-", record_.attempts.size() + 1); }
  int64_t NextReport() const {
    return record_.attempts.empty() ? 1 : record_.attempts.back().acknowledged_report() + 1;
  }
  void Report(const worker::v1::Report& report) {
    if (record_.attempts.empty()) return;
    const storage::v1::AttemptRecord& attempt = record_.attempts.back();
    const auto update =
        ApplyReports(record_, attempt.uid(), attempt.fencing_token(), {report}, TestTime());
    if (update.ok()) Commit(*update);
  }
  void Commit(const std::optional<JobUpdate>& update) {
    if (!update) return;
    for (const v1::Event& event : update->events) {
      if (!event.has_state_change()) continue;
      moves_.emplace_back(event.state_change().from(), event.state_change().to());
    }
    record_ = After(record_, *update);
  }

  JobRecord record_;
  std::vector<std::pair<v1::Job::State, v1::Job::State>> moves_;
  int64_t step_ = 0;
  bool cancel_asked_ = false;
  bool started_after_cancel_ = false;
};

// Every move that users may see.
bool IsAllowed(v1::Job::State from, v1::Job::State to) {
  using State = v1::Job;
  static const auto& allowed = *new std::set<std::pair<v1::Job::State, v1::Job::State>>{
      {State::STATE_UNSPECIFIED, State::QUEUED}, {State::QUEUED, State::STARTING},
      {State::QUEUED, State::CANCELLED},         {State::STARTING, State::RUNNING},
      {State::STARTING, State::CANCELLING},      {State::STARTING, State::FAILED},
      {State::STARTING, State::QUEUED},          {State::RUNNING, State::SUCCEEDED},
      {State::RUNNING, State::FAILED},           {State::RUNNING, State::CANCELLING},
      {State::RUNNING, State::QUEUED},           {State::CANCELLING, State::CANCELLED},
      {State::CANCELLING, State::SUCCEEDED},
  };
  return allowed.count({from, to}) > 0;
}

void CheckHistory(const History& history) {
  v1::Job::State state = v1::Job::STATE_UNSPECIFIED;
  int terminal_moves = 0;
  for (const auto& [from, to] : history.moves()) {
    ASSERT_EQ(from, state);  // No move is lost or told twice.
    ASSERT_TRUE(IsAllowed(from, to))
        << v1::Job::State_Name(from) << " to " << v1::Job::State_Name(to);
    terminal_moves += IsTerminal(to) ? 1 : 0;
    state = to;
  }
  ASSERT_EQ(state, history.state());
  ASSERT_LE(terminal_moves, 1);
  ASSERT_FALSE(history.started_after_cancel());
}

void DoSomething(unsigned choice, History& history) {
  switch (choice) {
    case 0:
      return history.Place();
    case 1:
      return history.Step();
    case 2:
      return history.Cancel();
    case 3:
      return history.Lose();
    case 4:
      return history.Finish(Finished::SUCCEEDED);
    case 5:
      return history.Finish(Finished::FAILED);
    case 6:
      return history.Finish(Finished::STOPPED);
    default:
      return history.Intrude(choice);
  }
}

TEST(CancelInterleavingTest, TenThousandRandomOrdersKeepThePromises) {
  constexpr unsigned kFirstSeed = 20240601;
  std::set<v1::Job::State> ends;
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + 10'000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    History history;
    for (int i = 0; i < 12; ++i) DoSomething(random() % 8, history);
    CheckHistory(history);
    if (testing::Test::HasFatalFailure()) return;
    ends.insert(history.state());
  }
  // The orders reach every state that a call can lead to.
  EXPECT_EQ(ends.size(), 7u);
}

TEST(CancelInterleavingTest, CancelBeforeTheSchedulerPicksTheJob) {
  History history;
  history.Cancel();
  history.Place();
  EXPECT_EQ(history.state(), v1::Job::CANCELLED);
  CheckHistory(history);
}

TEST(CancelInterleavingTest, AStepThatComesAfterTheCancelDoesNotRevive) {
  History history;
  history.Place();
  history.Cancel();
  history.Step();
  EXPECT_EQ(history.state(), v1::Job::CANCELLING);
  CheckHistory(history);
}

TEST(CancelInterleavingTest, TwoCancelsAreOne) {
  History history;
  history.Place();
  history.Step();
  history.Cancel();
  const size_t moves = history.moves().size();
  history.Cancel();
  EXPECT_EQ(history.moves().size(), moves);
}

TEST(CancelInterleavingTest, CancelOfAFinishedJobLeavesItsEnd) {
  History history;
  history.Place();
  history.Step();
  history.Finish(Finished::SUCCEEDED);
  history.Cancel();
  EXPECT_EQ(history.state(), v1::Job::SUCCEEDED);
  CheckHistory(history);
}

TEST(CancelInterleavingTest, AWorkerThatExitsDuringCancelEndsIt) {
  History history;
  history.Place();
  history.Step();
  history.Cancel();
  history.Lose();
  EXPECT_EQ(history.state(), v1::Job::CANCELLED);
  CheckHistory(history);
}

}  // namespace
}  // namespace traind::jobs
