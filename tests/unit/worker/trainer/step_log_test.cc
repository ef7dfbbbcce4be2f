#include "worker/trainer/step_log.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace traind {
namespace {

UpdateRecord Record(double loss) {
  UpdateRecord record;
  record.loss = loss;
  record.grad_norm = 2 * loss;
  record.learning_rate = 0.5;
  record.tokens = 100;
  record.supervised_tokens = 60;
  record.data = absl::Seconds(1);
  record.forward_backward = absl::Seconds(2);
  record.optim = absl::Seconds(1);
  record.cpu = absl::Seconds(6);
  return record;
}

TEST(StepLogTest, AveragesTheLossAndShowsTheNewestUpdate) {
  PendingLog pending;
  StepLog log(&pending);
  log.Add(Record(1));
  log.Add(Record(2));
  const v1::StepMetrics metrics = log.Take();
  EXPECT_DOUBLE_EQ(metrics.loss(), 1.5);
  EXPECT_DOUBLE_EQ(metrics.grad_norm(), 4);
  EXPECT_EQ(metrics.tokens(), 200);
  EXPECT_EQ(metrics.supervised_tokens(), 120);
  EXPECT_DOUBLE_EQ(metrics.tokens_per_second(), 25);
  EXPECT_DOUBLE_EQ(metrics.cpu_cores(), 1.5);
  EXPECT_DOUBLE_EQ(metrics.phase_seconds().at("data"), 1);
  EXPECT_DOUBLE_EQ(metrics.phase_seconds().at("forward_backward"), 2);
  EXPECT_DOUBLE_EQ(metrics.phase_seconds().at("optim"), 1);
  EXPECT_GT(metrics.memory_bytes(), 0);
  EXPECT_GE(metrics.peak_memory_bytes(), metrics.memory_bytes());
}

TEST(StepLogTest, StartsAnewAfterAReport) {
  PendingLog pending;
  StepLog log(&pending);
  log.Add(Record(8));
  log.Take();
  EXPECT_TRUE(log.empty());
  log.Add(Record(3));
  EXPECT_DOUBLE_EQ(log.Take().loss(), 3);
}

TEST(StepLogTest, NaNIsNotHidden) {
  PendingLog pending;
  StepLog log(&pending);
  log.Add(Record(1));
  log.Add(Record(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_TRUE(std::isnan(log.Take().loss()));
}

}  // namespace
}  // namespace traind
