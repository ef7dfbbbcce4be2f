#include "worker/trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "common/status/errors.h"
#include "tests/support/fake_causal_lm.h"
#include "tests/support/fake_checkpoint_store.h"
#include "tests/support/fake_report_sink.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Example Row(int32_t first, std::vector<int32_t> targets) {
  Example row;
  row.input_ids.push_back(first);
  row.supervised.push_back(0);
  for (const int32_t target : targets) {
    row.input_ids.push_back(target);
    row.supervised.push_back(1);
  }
  return row;
}

// Advances by a second with every look.
class TickingClock : public Clock {
 public:
  absl::Time Now() const override { return now_ += absl::Seconds(1); }

 private:
  mutable absl::Time now_ = absl::UnixEpoch();
};

class TrainerTest : public testing::Test {
 protected:
  TrainerTest() {
    options_.job_name = "jobs/a";
    options_.schedule = {LrSchedulerType::kConstant, 0.1, 0, 0};
    options_.optimizer.max_grad_norm = 0;
    options_.eval_strategy = IntervalStrategy::kNo;
    options_.save_strategy = IntervalStrategy::kNo;
    plan_options_.sequential_rows = true;
    plan_options_.per_device_train_batch_size = 1;
    plan_options_.num_train_epochs = 1;
  }

  // `count` rows of one target each; the row's first token is its number.
  void MakeRows(int32_t count) {
    for (int32_t i = 0; i < count; ++i) rows_.push_back(Row(i, {100 + i}));
  }

  absl::StatusOr<TrainingEnd> Run() {
    plan_options_.rows = static_cast<int64_t>(rows_.size());
    auto plan = BatchPlan::Create(plan_options_);
    if (!plan.ok()) return plan.status();
    Trainer trainer(options_, {model_, adapter_, *plan, rows_, eval_rows_, samples_, checkpoints_,
                               sink_, *stop_, clock_});
    return trainer.Run();
  }

  // A new process: everything but the checkpoints and the rows is fresh.
  void Restart() {
    std::fill(adapter_.parameters().begin(), adapter_.parameters().end(), 0.0f);
    std::fill(adapter_.gradients().begin(), adapter_.gradients().end(), 99.0f);
    std::fill(adapter_.exp_avg().begin(), adapter_.exp_avg().end(), 0.0f);
    std::fill(adapter_.exp_avg_sq().begin(), adapter_.exp_avg_sq().end(), 0.0f);
    model_.calls.clear();
    model_.on_call = nullptr;
    stop_ = std::make_unique<StopFlag>();
    sink_ = FakeReportSink();
  }

  std::vector<double> Losses() const {
    std::vector<double> losses;
    for (const auto& step : sink_.steps) losses.push_back(step.loss());
    return losses;
  }

  TrainerOptions options_;
  BatchPlanOptions plan_options_;
  std::vector<Example> rows_;
  std::vector<Example> eval_rows_;
  SampleQuestions samples_;
  Adapter adapter_{FakeCausalLm::Layout()};
  FakeCausalLm model_{&adapter_};
  FakeCheckpointStore checkpoints_;
  FakeReportSink sink_;
  std::unique_ptr<StopFlag> stop_ = std::make_unique<StopFlag>();
  TickingClock clock_;
};

// 7 equal micro-batches, accumulation 4, 2 epochs: windows of 4, 3, 4, 3 with the same gradient.
TEST_F(TrainerTest, APartialWindowHasTheSameGradientAsAFullOne) {
  MakeRows(7);
  model_.constant_gradient = true;
  plan_options_.gradient_accumulation_steps = 4;
  plan_options_.num_train_epochs = 2;
  ASSERT_EQ(Run().value(), TrainingEnd::kFinished);
  ASSERT_THAT(sink_.steps, SizeIs(4));
  for (const auto& step : sink_.steps) EXPECT_DOUBLE_EQ(step.grad_norm(), 1.0);
  std::vector<double> denominators;
  for (const auto& call : model_.calls) denominators.push_back(call.denominator);
  EXPECT_THAT(denominators, ElementsAre(4, 4, 4, 4, 3, 3, 3, 4, 4, 4, 4, 3, 3, 3));
}

TEST_F(TrainerTest, AWindowThatIsShorterThanTheAccumulationIsAnUpdate) {
  MakeRows(3);
  model_.constant_gradient = true;
  plan_options_.gradient_accumulation_steps = 4;
  ASSERT_TRUE(Run().ok());
  ASSERT_THAT(sink_.steps, SizeIs(1));
  EXPECT_DOUBLE_EQ(sink_.steps[0].grad_norm(), 1.0);
}

// Ragged rows: one batch of 4 rows and 4 micro-batches of 1 row give the same loss and gradient.
TEST_F(TrainerTest, TheLossDoesNotDependOnHowTheWindowIsCut) {
  rows_ = {Row(0, {100}), Row(1, {50, 60, 70}), Row(2, {10, 20}), Row(3, {200, 1, 2, 3, 4})};
  plan_options_.per_device_train_batch_size = 4;
  ASSERT_TRUE(Run().ok());
  const v1::StepMetrics whole = sink_.steps[0];
  Restart();
  plan_options_.per_device_train_batch_size = 1;
  plan_options_.gradient_accumulation_steps = 4;
  ASSERT_TRUE(Run().ok());
  EXPECT_NEAR(sink_.steps[0].loss(), whole.loss(), 1e-9);
  EXPECT_NEAR(sink_.steps[0].grad_norm(), whole.grad_norm(), 1e-6);
}

TEST_F(TrainerTest, TheHfDenominatorCountsLabelsBeforeTheShift) {
  rows_ = {Row(0, {100, 100, 100})};
  rows_[0].supervised[0] = 1;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(model_.calls[0].denominator, 4);
  Restart();
  options_.loss_denominator = LossDenominator::kShifted;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(model_.calls[0].denominator, 3);
}

TEST_F(TrainerTest, ReportsMeansOverLoggingStepsAndTheRest) {
  MakeRows(5);
  ASSERT_TRUE(Run().ok());
  const std::vector<double> each = Losses();
  Restart();
  options_.logging_steps = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(Losses(), ElementsAre((each[0] + each[1]) / 2, (each[2] + each[3]) / 2, each[4]));
  EXPECT_THAT(sink_.order, ElementsAre("step 2", "step 4", "step 5"));
  EXPECT_EQ(sink_.steps[0].tokens(), 4);
  EXPECT_EQ(sink_.steps[0].supervised_tokens(), 2);
  EXPECT_EQ(sink_.steps[0].total_steps(), 5);
  EXPECT_DOUBLE_EQ(sink_.steps[0].epoch(), 0.4);
}

TEST_F(TrainerTest, TheLoggedRateIsTheOneThatWasUsed) {
  MakeRows(4);
  options_.schedule = {LrSchedulerType::kLinear, 1.0, 1, 4};
  ASSERT_TRUE(Run().ok());
  std::vector<double> rates;
  for (const auto& step : sink_.steps) rates.push_back(step.learning_rate());
  EXPECT_THAT(rates, ElementsAre(0, 1, testing::DoubleEq(2.0 / 3), testing::DoubleEq(1.0 / 3)));
}

// AdamW's first step moves by the learning rate against the gradient's sign.
TEST_F(TrainerTest, AppliesTheUpdate) {
  MakeRows(1);
  ASSERT_TRUE(Run().ok());
  EXPECT_NEAR(adapter_.parameters()[0], 0.1, 1e-6);
}

TEST_F(TrainerTest, TheReportedNormIsTheOneBeforeClipping) {
  MakeRows(1);
  options_.optimizer.max_grad_norm = 0.001;
  ASSERT_TRUE(Run().ok());
  EXPECT_NEAR(sink_.steps[0].grad_norm(), 1.0, 1e-6);
}

TEST_F(TrainerTest, AWindowWithoutTargetsChangesNothingAndLogsNothing) {
  MakeRows(3);
  rows_[1] = Row(1, {});
  rows_[1].input_ids = {1, 2};
  rows_[1].supervised = {0, 0};
  options_.schedule = {LrSchedulerType::kLinear, 1.0, 0, 3};
  std::vector<float> weights;
  model_.on_call = [&](const FakeCausalLm::Call&) { weights.push_back(adapter_.parameters()[0]); };
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(sink_.order, ElementsAre("step 1", "step 3"));
  EXPECT_THAT(model_.calls, SizeIs(2));
  // The schedule did not move in the window that was left out.
  EXPECT_DOUBLE_EQ(sink_.steps[1].learning_rate(), 2.0 / 3);
  EXPECT_EQ(sink_.updates, 3);
}

TEST_F(TrainerTest, ANonFiniteLossMakesNoUpdateIsReportedAndNoticed) {
  MakeRows(3);
  model_.loss_at_step[1] = kNaN;
  ASSERT_EQ(Run().value(), TrainingEnd::kFinished);
  ASSERT_THAT(sink_.steps, SizeIs(3));
  EXPECT_TRUE(std::isnan(sink_.steps[1].loss()));
  EXPECT_TRUE(std::isnan(sink_.steps[1].grad_norm()));
  EXPECT_TRUE(std::isfinite(sink_.steps[2].loss()));
  EXPECT_TRUE(std::isfinite(adapter_.parameters()[0]));
  ASSERT_THAT(sink_.notices, SizeIs(1));
  EXPECT_EQ(sink_.notices[0].reason(), "NON_FINITE_LOSS");
  EXPECT_THAT(sink_.notices[0].message(), HasSubstr("step 2"));
}

TEST_F(TrainerTest, AnInfiniteGradientUnderAFiniteLossMakesNoUpdate) {
  MakeRows(2);
  // The gradient is a float: it overflows where the loss does not.
  model_.loss_at_step[0] = 1e300;
  ASSERT_TRUE(Run().ok());
  EXPECT_TRUE(std::isfinite(sink_.steps[0].loss()));
  EXPECT_TRUE(std::isinf(sink_.steps[0].grad_norm()));
  ASSERT_THAT(model_.calls, SizeIs(2));
  EXPECT_EQ(model_.calls[1].nll_sum, 0.5 * 1.01 * 1.01);  // w is still 0.
}

TEST_F(TrainerTest, FailsAtTheThirdNonFiniteUpdateInARow) {
  MakeRows(9);
  for (const uint64_t step : {1, 2, 4, 5, 6}) model_.loss_at_step[step] = kNaN;
  const auto end = Run();
  EXPECT_EQ(ReasonOf(end.status()), Reason::kNonFiniteLoss);
  EXPECT_EQ(MetadataOf(end.status(), "step"), "7");
  EXPECT_THAT(model_.calls, SizeIs(7));
}

TEST_F(TrainerTest, EvaluatesBeforeByStrategyAndAfter) {
  MakeRows(5);
  eval_rows_ = {Row(50, {100})};
  options_.eval_strategy = IntervalStrategy::kSteps;
  options_.eval_steps = 2;
  options_.save_strategy = IntervalStrategy::kSteps;
  options_.save_steps = 4;
  samples_.questions = {{"q", {7}, 1}};
  samples_.decode = [](absl::Span<const int32_t>) { return absl::StatusOr<std::string>("a"); };
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(sink_.order, ElementsAre("eval 0", "sample 0", "step 1", "step 2", "eval 2", "step 3",
                                       "step 4", "eval 4", "checkpoint 4", "step 5", "eval 5",
                                       "checkpoint 5", "sample 5"));
  EXPECT_GT(sink_.evals[0].runtime_seconds(), 0);
  EXPECT_EQ(sink_.checkpoints[0].name(), "jobs/a/checkpoints/4");
  EXPECT_GT(sink_.checkpoints[0].stall_seconds(), 0);
}

TEST_F(TrainerTest, EpochStrategiesFollowThePlan) {
  MakeRows(3);
  eval_rows_ = {Row(50, {100})};
  options_.eval_strategy = options_.save_strategy = IntervalStrategy::kEpoch;
  options_.logging_steps = 100;
  plan_options_.num_train_epochs = 2;
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(sink_.order,
              ElementsAre("eval 0", "eval 3", "checkpoint 3", "step 6", "eval 6", "checkpoint 6"));
}

TEST_F(TrainerTest, PhasesComeInOrder) {
  MakeRows(2);
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(sink_.phases,
              ElementsAre(v1::Attempt::RESTORING, v1::Attempt::WARMING, v1::Attempt::STEPPING));
  EXPECT_THAT(sink_.resumed, ElementsAre(0));
}

// 10 rows, micro-batch 2, 2 epochs, dropout: killed after every update and resumed.
TEST_F(TrainerTest, ARunThatIsKilledAfterAnyUpdateGoesOnBitForBit) {
  MakeRows(10);
  plan_options_ = BatchPlanOptions();
  plan_options_.per_device_train_batch_size = 2;
  plan_options_.num_train_epochs = 2;
  options_.save_strategy = IntervalStrategy::kSteps;
  options_.save_steps = 1;
  options_.logging_steps = 3;
  model_.dropout_noise = 0.5;
  ASSERT_TRUE(Run().ok());
  const std::vector<FakeCausalLm::Call> straight = model_.calls;
  const std::vector<double> losses = Losses();
  const float weight = adapter_.parameters()[0];
  ASSERT_THAT(straight, SizeIs(10));

  for (int64_t killed = 1; killed <= 9; ++killed) {
    checkpoints_.saved.clear();
    Restart();
    model_.on_call = [&](const FakeCausalLm::Call& call) {
      if (call.step + 1 == static_cast<uint64_t>(killed)) stop_->Request(StopKind::kStop);
    };
    ASSERT_TRUE(Run().ok());
    ASSERT_EQ(checkpoints_.saved.rbegin()->first, killed);
    std::vector<double> resumed_losses;
    for (const auto& step : sink_.steps) resumed_losses.push_back(step.loss());
    Restart();
    ASSERT_TRUE(Run().ok());
    EXPECT_THAT(sink_.resumed, ElementsAre(killed));
    const std::vector<FakeCausalLm::Call> rest(straight.begin() + killed, straight.end());
    EXPECT_EQ(model_.calls, rest) << "killed after " << killed;
    for (const double loss : Losses()) resumed_losses.push_back(loss);
    EXPECT_EQ(resumed_losses, losses) << "killed after " << killed;
    EXPECT_EQ(adapter_.parameters()[0], weight) << "killed after " << killed;
  }
}

TEST_F(TrainerTest, AStopLeavesTheWindowOutAndSavesTheLastUpdate) {
  MakeRows(8);
  plan_options_.gradient_accumulation_steps = 2;
  model_.on_call = [&](const FakeCausalLm::Call& call) {
    if (call.step == 2 && call.micro_batch == 0) stop_->Request(StopKind::kStopWithCheckpoint);
  };
  ASSERT_EQ(Run().value(), TrainingEnd::kStopped);
  EXPECT_THAT(checkpoints_.saved, SizeIs(1));
  EXPECT_EQ(checkpoints_.saved.begin()->first, 2);
  EXPECT_EQ(sink_.updates, 2);
}

TEST_F(TrainerTest, AStopWithoutCheckpointSavesNothing) {
  MakeRows(8);
  model_.on_call = [&](const FakeCausalLm::Call& call) {
    if (call.step == 2) stop_->Request(StopKind::kStop);
  };
  ASSERT_EQ(Run().value(), TrainingEnd::kStopped);
  EXPECT_THAT(checkpoints_.saved, IsEmpty());
}

TEST_F(TrainerTest, AFencedRunEndsWithoutWritingAnything) {
  MakeRows(8);
  options_.save_strategy = IntervalStrategy::kSteps;
  options_.save_steps = 1;
  model_.on_call = [&](const FakeCausalLm::Call& call) {
    if (call.step == 2) stop_->Request(StopKind::kFenced);
  };
  EXPECT_EQ(ReasonOf(Run().status()), Reason::kAttemptFenced);
  EXPECT_EQ(checkpoints_.saved.rbegin()->first, 2);
}

TEST_F(TrainerTest, ACheckpointThatCannotBeSavedEndsTheRunWithItsReason) {
  MakeRows(3);
  options_.save_strategy = IntervalStrategy::kSteps;
  options_.save_steps = 2;
  checkpoints_.save_error = ErrnoError(ENOSPC, Reason::kOutputFailed, "write", "/x");
  EXPECT_EQ(ReasonOf(Run().status()), Reason::kDiskFull);
}

TEST_F(TrainerTest, ASkippedCheckpointIsNoticed) {
  MakeRows(3);
  options_.save_strategy = IntervalStrategy::kSteps;
  options_.save_steps = 2;
  ASSERT_TRUE(Run().ok());
  Restart();
  checkpoints_.skipped = {"checkpoint-4: adapter_model.safetensors has the wrong hash"};
  ASSERT_TRUE(Run().ok());
  ASSERT_THAT(sink_.notices, SizeIs(1));
  EXPECT_THAT(sink_.notices[0].message(), HasSubstr("checkpoint-4"));
}

}  // namespace
}  // namespace traind
