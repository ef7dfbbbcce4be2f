#include "worker/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "common/status/errors.h"

namespace traind {
namespace {

// transformers.get_scheduler's rates (tests/golden/parity/make_lr_schedules.py).
TEST(LrScheduleTest, EqualsTransformersOver200Updates) {
  std::ifstream file(std::string(TRAIND_TEST_DATA) + "/golden/lr_schedules.json");
  ASSERT_TRUE(file.is_open());
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["schedules"].size(), 8u);
  double worst = 0;
  for (const auto& expected : golden["schedules"]) {
    LrSchedule schedule;
    schedule.type = *LrSchedulerTypeFromName(expected["lr_scheduler_type"].get<std::string>());
    schedule.peak = golden["peak"].get<double>();
    schedule.warmup_steps = expected["warmup_steps"].get<int64_t>();
    schedule.total_steps = golden["total_steps"].get<int64_t>();
    for (int64_t step = 0; step < schedule.total_steps; ++step) {
      const double rate = expected["rates"][static_cast<size_t>(step)].get<double>();
      worst = std::max(worst, std::abs(schedule.RateAt(step) - rate));
    }
  }
  std::cout << "worst difference " << worst << " (bar 1e-18)\n";
  EXPECT_LE(worst, 1e-18);
}

TEST(LrScheduleTest, NamesAreTransformersNames) {
  EXPECT_EQ(*LrSchedulerTypeFromName(""), LrSchedulerType::kLinear);
  EXPECT_EQ(*LrSchedulerTypeFromName("cosine"), LrSchedulerType::kCosine);
  const absl::Status status = LrSchedulerTypeFromName("cosin").status();
  ASSERT_EQ(FieldViolationsOf(status).size(), 1u);
  EXPECT_EQ(FieldViolationsOf(status)[0].field, "training.lr_scheduler_type");
}

TEST(LrScheduleTest, WarmupIsRoundedUpAndStepsWin) {
  EXPECT_EQ(WarmupSteps(25, 0.1, 0), 3);
  EXPECT_EQ(WarmupSteps(100, 0, 0), 0);
  EXPECT_EQ(WarmupSteps(100, 0.5, 7), 7);
  EXPECT_EQ(WarmupSteps(25, 0, 0.1), 3);
}

TEST(LrScheduleTest, AScheduleOfOneUpdateIsFinite) {
  for (const char* name : {"linear", "cosine", "constant", "constant_with_warmup"}) {
    const LrSchedule schedule{*LrSchedulerTypeFromName(name), 1, 1, 1};
    EXPECT_TRUE(std::isfinite(schedule.RateAt(0))) << name;
    EXPECT_TRUE(std::isfinite(schedule.RateAt(1))) << name;
  }
}

}  // namespace
}  // namespace traind
