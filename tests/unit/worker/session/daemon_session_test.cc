#include "worker/session/daemon_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status/errors.h"
#include "tests/support/fake_worker_service.h"

namespace traind {
namespace {

using testing::IsEmpty;
using worker::v1::Finished;
using worker::v1::Report;

class DaemonSessionTest : public testing::Test {
 protected:
  DaemonSessionTest()
      : stem_(absl::StrCat(testing::TempDir(), "traind.", ::getpid(), ".",
                           testing::UnitTest::GetInstance()->current_test_info()->line())),
        target_(absl::StrCat("unix:", stem_, ".sock")),
        daemon_(target_) {
    std::filesystem::remove(stem_ + ".spool");
  }
  ~DaemonSessionTest() override {
    session_.reset();
    daemon_.StopServing();
    std::filesystem::remove(stem_ + ".spool");
    std::filesystem::remove(stem_ + ".sock");
  }

  void StartSession() {
    DaemonSessionOptions options;
    options.daemon_target = target_;
    options.attempt_uid = "uid-1";
    options.fencing_token = 7;
    options.spool_path = stem_ + ".spool";
    options.heartbeat_interval = absl::Milliseconds(20);
    options.min_backoff = absl::Milliseconds(5);
    options.max_backoff = absl::Milliseconds(50);
    options.welcome_timeout = absl::Milliseconds(200);
    auto session = DaemonSession::Start(options, &stop_);
    ASSERT_TRUE(session.ok()) << session.status();
    session_ = *std::move(session);
  }

  void SendSteps(int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      v1::StepMetrics metrics;
      metrics.set_step(step);
      session_->OnStep(metrics);
      session_->OnUpdate(step);
    }
  }

  absl::Status FinishAndWait(absl::Duration limit = absl::Seconds(30)) {
    Finished finished;
    finished.set_result(Finished::SUCCEEDED);
    session_->Finish(finished);
    return session_->WaitUntilDelivered(limit, limit);
  }

  // Reports 1 … last are steps, the one after them is `finished`.
  void ExpectAllReports(int64_t last) {
    EXPECT_THAT(daemon_.gaps(), IsEmpty());
    const std::vector<Report> reports = daemon_.reports();
    ASSERT_EQ(static_cast<int64_t>(reports.size()), last + 1);
    for (int64_t i = 0; i < last; ++i) {
      const Report& report = reports[static_cast<size_t>(i)];
      EXPECT_EQ(report.number(), i + 1);
      EXPECT_EQ(report.step().step(), i + 1);
      EXPECT_GT(report.time().seconds(), 0);
    }
    EXPECT_TRUE(reports.back().has_finished());
  }

  const std::string stem_;
  const std::string target_;
  StopFlag stop_;
  FakeWorkerService daemon_;
  std::unique_ptr<DaemonSession> session_;
};

TEST_F(DaemonSessionTest, SaysWhoItIsAndDeliversInOrder) {
  daemon_.StartServing();
  StartSession();
  SendSteps(1, 5);
  EXPECT_TRUE(FinishAndWait().ok());
  ExpectAllReports(5);
  ASSERT_EQ(daemon_.hellos().size(), 1u);
  EXPECT_EQ(daemon_.hellos()[0].attempt_uid(), "uid-1");
  EXPECT_EQ(daemon_.hellos()[0].fencing_token(), 7);
  EXPECT_EQ(daemon_.hellos()[0].pid(), ::getpid());
}

TEST_F(DaemonSessionTest, EveryKindOfReportArrives) {
  daemon_.StartServing();
  StartSession();
  session_->OnPhase(v1::Attempt::LOADING_DATA);
  session_->OnPlan(v1::TrainingPlan());
  session_->OnResumed(0);
  session_->OnStep(v1::StepMetrics());
  session_->OnEval(v1::EvalMetrics());
  session_->OnCheckpoint(v1::CheckpointSaved());
  session_->OnSample(v1::SampleAnswer());
  session_->OnNotice(v1::Notice());
  ASSERT_TRUE(FinishAndWait().ok());
  std::vector<Report::KindCase> kinds;
  for (const Report& report : daemon_.reports()) kinds.push_back(report.kind_case());
  EXPECT_THAT(kinds, testing::ElementsAre(Report::kPhase, Report::kPlan, Report::kResumed,
                                          Report::kStep, Report::kEval, Report::kCheckpoint,
                                          Report::kSample, Report::kNotice, Report::kFinished));
}

TEST_F(DaemonSessionTest, ADaemonThatComesLateGetsEverything) {
  StartSession();
  SendSteps(1, 500);
  Finished finished;
  finished.set_result(Finished::SUCCEEDED);
  session_->Finish(finished);
  EXPECT_EQ(session_->WaitUntilDelivered(absl::Milliseconds(50), absl::Milliseconds(50)).code(),
            absl::StatusCode::kDeadlineExceeded);
  daemon_.StartServing();
  EXPECT_TRUE(session_->WaitUntilDelivered(absl::Seconds(30), absl::Seconds(30)).ok());
  ExpectAllReports(500);
}

TEST_F(DaemonSessionTest, ConnectionsThatBreakLeaveNoGapAndNoDouble) {
  daemon_.BreakAfterRequests(7);
  daemon_.StartServing();
  StartSession();
  SendSteps(1, 100);
  EXPECT_TRUE(FinishAndWait().ok());
  ExpectAllReports(100);
  EXPECT_GT(daemon_.hellos().size(), 10u);
}

TEST_F(DaemonSessionTest, ADaemonThatIsRestartedGoesOnWhereItWas) {
  daemon_.StartServing();
  StartSession();
  SendSteps(1, 10);
  ASSERT_TRUE(daemon_.WaitForReports(10));
  daemon_.StopServing();
  SendSteps(11, 20);
  daemon_.StartServing();
  EXPECT_TRUE(FinishAndWait().ok());
  ExpectAllReports(20);
}

TEST_F(DaemonSessionTest, AWorkerThatWasKilledIsContinuedFromItsSpool) {
  StartSession();
  SendSteps(1, 10);
  session_.reset();  // What is not delivered stays on disk.
  StartSession();
  SendSteps(11, 12);
  daemon_.StartServing();
  EXPECT_TRUE(FinishAndWait().ok());
  ExpectAllReports(12);
}

TEST_F(DaemonSessionTest, SendsHeartbeatsWhenNothingHappens) {
  daemon_.StartServing();
  StartSession();
  EXPECT_TRUE(daemon_.WaitForHeartbeats(3));
}

TEST_F(DaemonSessionTest, AFencedWorkerIsToldToStopAndDialsNoMore) {
  daemon_.Fence();
  daemon_.StartServing();
  StartSession();
  SendSteps(1, 1);
  EXPECT_EQ(ReasonOf(FinishAndWait()), Reason::kAttemptFenced);
  EXPECT_EQ(stop_.kind(), StopKind::kFenced);
  EXPECT_THAT(daemon_.reports(), IsEmpty());
}

TEST_F(DaemonSessionTest, IsFencedInTheMiddleOfAConnection) {
  daemon_.StartServing();
  StartSession();
  SendSteps(1, 1);
  ASSERT_TRUE(daemon_.WaitForReports(1));
  daemon_.Fence();
  EXPECT_EQ(ReasonOf(FinishAndWait()), Reason::kAttemptFenced);
  EXPECT_EQ(daemon_.reports().size(), 1u);
}

TEST_F(DaemonSessionTest, PassesTheDaemonsStopOn) {
  daemon_.StopAtReport(2, /*checkpoint=*/true);
  daemon_.StartServing();
  StartSession();
  SendSteps(1, 3);
  EXPECT_TRUE(FinishAndWait().ok());
  EXPECT_EQ(stop_.kind(), StopKind::kStopWithCheckpoint);
}

TEST_F(DaemonSessionTest, ADaemonThatNeverSaysWelcomeIsDialledAgain) {
  daemon_.StaySilent();
  daemon_.StartServing();
  StartSession();
  EXPECT_TRUE(daemon_.WaitForHellos(3));
  EXPECT_THAT(daemon_.reports(), IsEmpty());
}

TEST_F(DaemonSessionTest, EndsWithoutDelayWhileTheDaemonIsAwayOrMute) {
  daemon_.AcknowledgeNothing();
  daemon_.StartServing();
  StartSession();
  SendSteps(1, 1000);
  ASSERT_TRUE(daemon_.WaitForReports(1000));
  EXPECT_EQ(session_->WaitUntilDelivered(absl::Milliseconds(20), absl::Milliseconds(20)).code(),
            absl::StatusCode::kDeadlineExceeded);
  const absl::Time start = absl::Now();
  session_.reset();
  EXPECT_LT(absl::Now() - start, absl::Seconds(5));
}

TEST_F(DaemonSessionTest, AStopShortensTheWaitForADaemonThatIsAway) {
  StartSession();
  SendSteps(1, 1);
  stop_.Request(StopKind::kStopWithCheckpoint);
  const absl::Status waited = session_->WaitUntilDelivered(absl::Hours(24), absl::Milliseconds(10));
  EXPECT_EQ(waited.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(waited.message()), testing::HasSubstr(stem_ + ".spool"));
}

}  // namespace
}  // namespace traind
