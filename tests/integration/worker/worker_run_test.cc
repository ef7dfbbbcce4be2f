// A worker and its daemon, from hello to finished.
#include <gmock/gmock.h>

#include "common/status/errors.h"
#include "tests/integration/worker/worker_harness.h"

namespace traind {
namespace {

using testing::IsEmpty;
using testing::SizeIs;
using worker::v1::Finished;
using worker::v1::Report;

class WorkerRunTest : public WorkerHarness {
 protected:
  void ExpectDense(const std::vector<Report>& reports) {
    for (size_t i = 0; i < reports.size(); ++i) {
      EXPECT_EQ(reports[i].number(), static_cast<int64_t>(i + 1));
    }
  }
};

TEST_F(WorkerRunTest, TrainsReportsAndPublishesAnAdapter) {
  *spec_.mutable_dataset()->add_eval() = spec_.dataset().train(0);
  auto* message = spec_.add_sample_prompts()->add_messages();
  message->set_role("user");
  message->set_content("row 3");
  spec_.mutable_output()->set_path(dir_.File("copy"));
  ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
  const std::vector<Report> reports = daemon_->reports();
  ExpectDense(reports);
  EXPECT_EQ(FinishedOf(reports).result(), Finished::SUCCEEDED);
  EXPECT_EQ(FinishedOf(reports).adapter_path(), dir_.File("adapter"));
  const std::vector<v1::StepMetrics> steps = StepsOf(reports);
  ASSERT_THAT(steps, SizeIs(10));
  EXPECT_EQ(steps.back().step(), 10);
  EXPECT_EQ(steps.back().total_steps(), 10);
  EXPECT_DOUBLE_EQ(steps.back().epoch(), 2.0);
  EXPECT_GT(steps.front().grad_norm(), 0);
  EXPECT_DOUBLE_EQ(steps.front().learning_rate(), 0.01);
  EXPECT_DOUBLE_EQ(steps.back().learning_rate(), 0.001);
  std::vector<double> eval_losses;
  std::vector<v1::SampleAnswer> samples;
  for (const Report& report : reports) {
    if (report.has_eval()) eval_losses.push_back(report.eval().loss());
    if (report.has_sample()) samples.push_back(report.sample());
  }
  ASSERT_THAT(eval_losses, SizeIs(3));
  EXPECT_LT(eval_losses.back(), eval_losses.front());
  ASSERT_THAT(samples, SizeIs(2));
  EXPECT_EQ(samples[0].prompt(), "row 3");
  for (const char* file : {"adapter_model.safetensors", "adapter_config.json", "tokenizer.json",
                           "tokenizer_config.json", "manifest.json"}) {
    EXPECT_TRUE(FileExists(dir_.File(absl::StrCat("adapter/", file)))) << file;
    EXPECT_TRUE(FileExists(dir_.File(absl::StrCat("copy/", file)))) << file;
  }
}

TEST_F(WorkerRunTest, PhasesAndPlanComeBeforeTheFirstStep) {
  spec_.mutable_training()->set_max_steps(2);
  ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
  std::vector<std::string> order;
  for (const Report& report : daemon_->reports()) {
    if (report.has_step()) order.push_back("step");
    if (report.has_plan()) order.push_back("plan");
    if (report.has_resumed()) order.push_back("resumed");
    if (report.kind_case() == Report::kPhase) {
      order.push_back(v1::Attempt::Phase_Name(report.phase()));
    }
    if (!report.has_plan()) continue;
    EXPECT_EQ(report.plan().rows_kept(), 10);
    EXPECT_EQ(report.plan().steps_per_epoch(), 5);
    EXPECT_EQ(report.plan().total_steps(), 2);
    EXPECT_GT(report.plan().trainable_parameters(), 0);
    EXPECT_GT(report.plan().total_parameters(), report.plan().trainable_parameters());
    EXPECT_GT(report.plan().supervised_tokens(), 0);
  }
  EXPECT_THAT(order,
              testing::ElementsAre("LOADING_DATA", "plan", "LOADING_MODEL", "RESTORING", "resumed",
                                   "WARMING", "STEPPING", "step", "step", "EXPORTING"));
}

TEST_F(WorkerRunTest, TrainsToTheEndWithoutADaemonAndDeliversLater) {
  NextAttempt();
  StartWorker();
  ASSERT_TRUE(WaitUntil([this] { return !AdapterBytes().empty(); }, absl::Seconds(90)));
  daemon_->StartServing();
  ExpectExit(WaitForExit(), WorkerExit::kSucceeded);
  EXPECT_THAT(daemon_->gaps(), IsEmpty());
  ExpectDense(daemon_->reports());
  EXPECT_THAT(StepsOf(daemon_->reports()), SizeIs(10));
  EXPECT_EQ(FinishedOf(daemon_->reports()).result(), Finished::SUCCEEDED);
}

TEST_F(WorkerRunTest, ConnectionsThatBreakInTheRunLeaveNoGap) {
  NextAttempt();
  daemon_->BreakAfterRequests(4);
  daemon_->StartServing();
  StartWorker();
  ExpectExit(WaitForExit(), WorkerExit::kSucceeded);
  EXPECT_THAT(daemon_->gaps(), IsEmpty());
  ExpectDense(daemon_->reports());
  EXPECT_THAT(StepsOf(daemon_->reports()), SizeIs(10));
  EXPECT_GT(daemon_->hellos().size(), 2u);
}

TEST_F(WorkerRunTest, AFencedWorkerStopsAndPublishesNothing) {
  spec_.mutable_training()->set_max_steps(1000000);
  NextAttempt();
  daemon_->StartServing();
  StartWorker();
  ASSERT_TRUE(daemon_->WaitForReports(10));
  daemon_->Fence();
  ExpectExit(WaitForExit(), WorkerExit::kFenced);
  EXPECT_EQ(FinishedOf(Spooled()).result(), Finished::RESULT_UNSPECIFIED);
  EXPECT_FALSE(FileExists(dir_.File("adapter")));
}

TEST_F(WorkerRunTest, SigtermStopsWithACheckpoint) {
  spec_.mutable_training()->set_max_steps(1000000);
  spec_.mutable_training()->set_save_strategy("no");
  NextAttempt();
  daemon_->StartServing();
  StartWorker();
  ASSERT_TRUE(daemon_->WaitForReports(10));
  ASSERT_TRUE(worker_->Signal(SIGTERM).ok());
  ExpectExit(WaitForExit(), WorkerExit::kStopped);
  EXPECT_EQ(FinishedOf(daemon_->reports()).result(), Finished::STOPPED);
  EXPECT_THAT(ListDirectory(dir_.File("checkpoints")).value(), SizeIs(1));
}

TEST_F(WorkerRunTest, TheDaemonsStopEndsWithACheckpointThatIsResumedFrom) {
  spec_.mutable_training()->set_max_steps(1000000);
  spec_.mutable_training()->set_save_strategy("no");
  int64_t first = 1;
  for (int attempt = 0; attempt < 2; ++attempt) {
    NextAttempt();
    daemon_->StopAtReport(10, /*checkpoint=*/true);
    daemon_->StartServing();
    StartWorker();
    ExpectExit(WaitForExit(), WorkerExit::kStopped);
    EXPECT_EQ(FinishedOf(daemon_->reports()).result(), Finished::STOPPED);
    const int64_t last = StepsOf(daemon_->reports()).back().step();
    EXPECT_TRUE(FileExists(dir_.File(absl::StrCat("checkpoints/checkpoint-", last)))) << last;
    EXPECT_EQ(StepsOf(daemon_->reports()).front().step(), first);
    first = last + 1;
  }
}

TEST_F(WorkerRunTest, ADiskThatIsFullWhileSavingFailsTheRunAndKeepsTheLastCheckpoint) {
  ExpectExit(RunAttempt("checkpoint.after_weights:enospc@3"), WorkerExit::kFailed);
  EXPECT_EQ(FinishedOf(daemon_->reports()).result(), Finished::FAILED);
  EXPECT_EQ(ReasonOf(ErrorOf(daemon_->reports())), Reason::kDiskFull);
  EXPECT_THAT(StepsOf(daemon_->reports()), SizeIs(3));
  ExpectExit(RunAttempt(), WorkerExit::kSucceeded);
  EXPECT_EQ(StepsOf(daemon_->reports()).front().step(), 3);
}

}  // namespace
}  // namespace traind
