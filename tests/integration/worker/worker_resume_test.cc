// Stopped or killed, and resumed: the same run bit for bit. The order of rows shows in the losses,
// which differ from row to row, and dropout is 0.5.
#include <gmock/gmock.h>

#include <map>

#include "tests/integration/worker/worker_harness.h"
#include "tests/support/fake_report_sink.h"
#include "worker/trainer/run_training.h"

namespace traind {
namespace {

using testing::SizeIs;

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

// Asks for a stop as soon as it sees a step.
class StopAtStep : public FakeReportSink {
 public:
  StopAtStep(int64_t step, StopFlag* stop) : step_(step), stop_(stop) {}

  void OnStep(const v1::StepMetrics& metrics) override {
    FakeReportSink::OnStep(metrics);
    if (metrics.step() == step_) stop_->Request(StopKind::kStopWithCheckpoint);
  }

 private:
  const int64_t step_;
  StopFlag* const stop_;
};

// In this process, so that the stop comes at an exact step.
class RunResumeTest : public WorkerHarness {
 protected:
  // Trains until step `last` and returns the losses; 0: to the end.
  std::vector<double> Train(int64_t last, TrainingEnd expected_end) {
    auto options = RunOptionsFromSpec(spec_);
    EXPECT_TRUE(options.ok()) << options.status();
    options->run_id = job_uid_;
    options->trainer.job_name = "jobs/a";
    options->checkpoints_dir = dir_.File("checkpoints");
    options->adapter_dir = dir_.File("adapter");
    options->threads = 1;
    StopFlag stop;
    StopAtStep sink(last, &stop);
    const auto end = RunTraining(*options, sink, stop);
    EXPECT_TRUE(end.ok()) << end.status();
    EXPECT_EQ(end.value_or(expected_end), expected_end);
    std::vector<double> losses;
    for (const auto& step : sink.steps) losses.push_back(step.loss());
    return losses;
  }
};

TEST_F(RunResumeTest, StoppedAfterHalfAndResumedGivesTheSameLossesAndAdapter) {
  spec_.mutable_training()->set_save_strategy("no");
  spec_.mutable_training()->set_gradient_accumulation_steps(2);
  spec_.mutable_training()->set_max_steps(12);
  spec_.mutable_training()->set_warmup_steps(3);
  const std::vector<double> straight = Train(0, TrainingEnd::kFinished);
  const std::string adapter = AdapterBytes();
  ASSERT_THAT(straight, SizeIs(12));
  ASSERT_FALSE(adapter.empty());
  NewJob();
  std::vector<double> losses = Train(6, TrainingEnd::kStopped);
  EXPECT_THAT(losses, SizeIs(6));
  EXPECT_FALSE(FileExists(dir_.File("adapter")));
  for (const double loss : Train(0, TrainingEnd::kFinished)) losses.push_back(loss);
  EXPECT_EQ(losses, straight);
  EXPECT_EQ(AdapterBytes(), adapter);
}

// So the check above is able to fail.
TEST_F(RunResumeTest, AnotherSeedGivesAnotherAdapter) {
  const std::vector<double> losses = Train(0, TrainingEnd::kFinished);
  const std::string adapter = AdapterBytes();
  NewJob();
  spec_.mutable_training()->set_seed(43);
  EXPECT_NE(Train(0, TrainingEnd::kFinished), losses);
  EXPECT_NE(AdapterBytes(), adapter);
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
