// Stopped or killed, and resumed: the same run bit for bit. The order of rows shows in the losses,
// which differ from row to row, and dropout is 0.5.
#include <gmock/gmock.h>

#include <map>

#include "tests/integration/worker/worker_harness.h"

namespace traind {
namespace {

using testing::SizeIs;
using worker::v1::Finished;

class WorkerResumeTest : public WorkerHarness {
 protected:
  // Step → loss.
  using Losses = std::map<int64_t, double>;

  static void AddLosses(const std::vector<worker::v1::Report>& reports, Losses& losses) {
    for (const v1::StepMetrics& step : StepsOf(reports)) losses[step.step()] = step.loss();
  }

  // The run that nothing disturbs.
  void RunStraight() {
    ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
    AddLosses(Spooled(), straight_losses_);
    straight_adapter_ = AdapterBytes();
    ASSERT_THAT(straight_losses_, SizeIs(10));
    ASSERT_FALSE(straight_adapter_.empty());
  }

  static int64_t ResumedAt(const std::vector<worker::v1::Report>& reports) {
    for (const auto& report : reports) {
      if (report.has_resumed()) return report.resumed().step();
    }
    return -1;
  }

  Losses straight_losses_;
  std::string straight_adapter_;
};

TEST_F(WorkerResumeTest, StoppedByTheDaemonAndResumedGivesTheSameAdapter) {
  spec_.mutable_training()->set_save_strategy("no");
  RunStraight();
  NewJob();
  NextAttempt();
  daemon_->StopAtReport(9, /*checkpoint=*/true);
  daemon_->StartServing();
  StartWorker();
  ExpectExit(WaitForExit(), WorkerExit::kStopped);
  EXPECT_EQ(FinishedOf(daemon_->reports()).result(), Finished::STOPPED);
  Losses losses;
  AddLosses(Spooled(), losses);
  const auto stopped_after = static_cast<int64_t>(losses.size());
  ASSERT_GE(stopped_after, 1);
  ASSERT_LT(stopped_after, 10);
  ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
  EXPECT_EQ(ResumedAt(Spooled()), stopped_after);
  AddLosses(Spooled(), losses);
  EXPECT_EQ(losses, straight_losses_);
  EXPECT_EQ(AdapterBytes(), straight_adapter_);
}

TEST_F(WorkerResumeTest, KilledAfterAnyUpdateAndResumedGivesTheSameLossesAndAdapter) {
  RunStraight();
  for (const int killed : {1, 2, 5, 7, 9}) {
    NewJob();
    Losses losses;
    const ExitState exit = RunAttempt(absl::StrCat("trainer.after_update:exit@", killed));
    EXPECT_EQ(exit.value, 137) << DescribeExit(exit);
    AddLosses(Spooled(), losses);
    EXPECT_THAT(losses, SizeIs(static_cast<size_t>(killed)));
    ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
    EXPECT_EQ(ResumedAt(Spooled()), killed);
    AddLosses(Spooled(), losses);
    EXPECT_EQ(losses, straight_losses_) << "killed after " << killed;
    EXPECT_EQ(AdapterBytes(), straight_adapter_) << "killed after " << killed;
  }
}

TEST_F(WorkerResumeTest, KilledInTheMiddleOfASaveResumesFromTheCheckpointBefore) {
  RunStraight();
  for (const char* point : {"checkpoint.after_weights", "checkpoint.before_rename"}) {
    NewJob();
    const ExitState exit = RunAttempt(absl::StrCat(point, ":exit@4"));
    EXPECT_EQ(exit.value, 137) << DescribeExit(exit);
    ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
    EXPECT_EQ(ResumedAt(Spooled()), 3) << point;
    EXPECT_EQ(AdapterBytes(), straight_adapter_) << point;
  }
}

TEST_F(WorkerResumeTest, KilledWhileExportingPublishesOnTheNextAttempt) {
  RunStraight();
  NewJob();
  const ExitState exit = RunAttempt("export.before_rename:exit");
  EXPECT_EQ(exit.value, 137) << DescribeExit(exit);
  EXPECT_FALSE(FileExists(dir_.File("adapter")));
  ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
  EXPECT_EQ(ResumedAt(Spooled()), 10);
  EXPECT_EQ(AdapterBytes(), straight_adapter_);
}

}  // namespace
}  // namespace traind
