#include "worker/data/batch_plan.h"

#include <algorithm>
#include <numeric>

#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden_json.h"
#include "worker/data/random_permutation.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

BatchPlanOptions Options(int64_t rows, int64_t batch_size, int64_t accumulation, double epochs) {
  BatchPlanOptions options;
  options.rows = rows;
  options.per_device_train_batch_size = batch_size;
  options.gradient_accumulation_steps = accumulation;
  options.num_train_epochs = epochs;
  return options;
}

BatchPlan Plan(const BatchPlanOptions& options) {
  auto plan = BatchPlan::Create(options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *std::move(plan);
}

std::vector<int64_t> RowsOf(const UpdatePlan& update) {
  std::vector<int64_t> rows;
  for (const MicroBatch& batch : update.micro_batches) {
    rows.insert(rows.end(), batch.begin(), batch.end());
  }
  return rows;
}

std::vector<size_t> WindowSizes(BatchPlan plan) {
  std::vector<size_t> sizes;
  for (int64_t step = 0; step < plan.total_steps(); ++step) {
    sizes.push_back(plan.UpdateAt(step).micro_batches.size());
  }
  return sizes;
}

// Case C20: one number of updates, which the last partial window of an epoch is part of.
TEST(BatchPlanTest, CountsUpdatesAsTrainerDoes) {
  for (const Json& row : GoldenJson("cases/C20/expected.json")["table"]) {
    SCOPED_TRACE(row.dump());
    BatchPlanOptions options =
        Options(row["rows"], row["micro_batch"], row["accumulation"], row["epochs"]);
    options.world_size = row["world"];
    const BatchPlan plan = Plan(options);
    EXPECT_EQ(plan.micro_batches_per_epoch(), row["micro_batches_per_rank_per_epoch"]);
    EXPECT_EQ(plan.steps_per_epoch(), row["updates_per_epoch"]);
    EXPECT_EQ(plan.total_steps(), row["total_updates"]);
  }
}

TEST(BatchPlanTest, PartsOfAnEpochAreRoundedUpAndMaxStepsWins) {
  EXPECT_EQ(Plan(Options(10, 2, 1, 0.5)).total_steps(), 3);
  EXPECT_EQ(Plan(Options(10, 2, 1, 0.01)).total_steps(), 1);
  BatchPlanOptions options = Options(10, 2, 1, 0.5);
  options.max_steps = 12;
  EXPECT_EQ(Plan(options).total_steps(), 12);
}

// Case C22: a partial window is an update of its own and takes nothing from the next epoch.
TEST(BatchPlanTest, ThePartialWindowAtAnEpochsEndIsAnUpdate) {
  const Json expected = GoldenJson("cases/C22/expected.json");
  EXPECT_EQ(WindowSizes(Plan(Options(7, 1, 4, 2))),
            expected["micro_batches_in_update"].get<std::vector<size_t>>());
  const std::vector<size_t> windows = WindowSizes(Plan(Options(63, 1, 8, 1)));
  EXPECT_EQ(windows.size(), expected["63_micro_batches_accum_8"]["updates"]);
  EXPECT_EQ(windows.back(), expected["63_micro_batches_accum_8"]["last_window"]);
  EXPECT_THAT(WindowSizes(Plan(Options(3, 1, 4, 1))), ElementsAre(3u));
}

// Case C24: what an update trains on depends on its number alone.
TEST(BatchPlanTest, AResumedRunTakesTheSameRows) {
  const Json expected = GoldenJson("cases/C24/expected.json");
  const BatchPlanOptions options =
      Options(expected["rows"], expected["micro_batch"], 1, expected["epochs"]);
  BatchPlan straight = Plan(options);
  std::vector<int64_t> consumed;
  for (int64_t step = 0; step < straight.total_steps(); ++step) {
    const std::vector<int64_t> rows = RowsOf(straight.UpdateAt(step));
    consumed.insert(consumed.end(), rows.begin(), rows.end());
    EXPECT_EQ(RowsOf(Plan(options).UpdateAt(step)), rows) << "resumed after update " << step;
  }
  EXPECT_EQ(consumed.size(), 20u);
  std::sort(consumed.begin() + 10, consumed.end());
  for (int64_t row = 0; row < 10; ++row) EXPECT_EQ(consumed[static_cast<size_t>(10 + row)], row);
}

TEST(BatchPlanTest, EachEpochIsTorchsPermutationOfItsOwnSeed) {
  BatchPlanOptions options = Options(10, 10, 1, 3);
  options.data_seed = 7;
  BatchPlan plan = Plan(options);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const UpdatePlan update = plan.UpdateAt(epoch);
    EXPECT_EQ(update.epoch, epoch);
    EXPECT_EQ(RowsOf(update), RandomPermutation(10, static_cast<uint64_t>(7 + epoch)));
  }
}

TEST(BatchPlanTest, RowsStayInOrderIfAskedFor) {
  BatchPlanOptions options = Options(5, 2, 2, 2);
  options.sequential_rows = true;
  BatchPlan plan = Plan(options);
  EXPECT_THAT(plan.UpdateAt(0).micro_batches, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_THAT(plan.UpdateAt(1).micro_batches, ElementsAre(ElementsAre(4)));
  EXPECT_THAT(plan.UpdateAt(2).micro_batches, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
}

TEST(BatchPlanTest, RanksShareTheRowsWithoutRepeatingAny) {
  BatchPlanOptions options = Options(7, 1, 2, 1);
  options.sequential_rows = true;
  options.world_size = 2;
  BatchPlan first = Plan(options);
  options.rank = 1;
  BatchPlan second = Plan(options);
  EXPECT_THAT(RowsOf(first.UpdateAt(0)), ElementsAre(0, 2));
  EXPECT_THAT(RowsOf(second.UpdateAt(0)), ElementsAre(1, 3));
  EXPECT_THAT(first.UpdateAt(1).micro_batches, ElementsAre(ElementsAre(4), ElementsAre(6)));
  EXPECT_THAT(second.UpdateAt(1).micro_batches, ElementsAre(ElementsAre(5), ElementsAre()));
}

TEST(BatchPlanTest, TheEpochIsCountedInMicroBatches) {
  const BatchPlan plan = Plan(Options(5, 1, 2, 2));
  EXPECT_DOUBLE_EQ(plan.EpochAt(0), 0);
  EXPECT_DOUBLE_EQ(plan.EpochAt(1), 0.4);
  EXPECT_DOUBLE_EQ(plan.EpochAt(3), 1);
  EXPECT_DOUBLE_EQ(plan.EpochAt(4), 1.4);
}

TEST(BatchPlanTest, AllWrongSettingsAreNamedAtOnce) {
  BatchPlanOptions options = Options(0, 0, -1, 0);
  options.world_size = 0;
  const auto plan = BatchPlan::Create(options);
  const std::vector<FieldViolation> violations = FieldViolationsOf(plan.status());
  ASSERT_EQ(violations.size(), 6u) << plan.status();
  EXPECT_EQ(violations[1].field, "per_device_train_batch_size");
  EXPECT_THAT(violations[1].description, HasSubstr("at least 1, but is 0"));
}

TEST(BatchPlanTest, AnUpdateIsDividedByTheLabelsOfItsWholeWindow) {
  const Example masked = {{1, 10, 11}, {0, 1, 1}};
  const Example whole = {{5, 6}, {1, 1}};
  const std::vector<PackedBatch> window = {PackExamples({&masked}), PackExamples({&whole})};
  EXPECT_EQ(WindowDenominator(window, LossDenominator::kHf), 4);
  EXPECT_EQ(WindowDenominator(window, LossDenominator::kShifted), 3);
  EXPECT_EQ(WindowDenominator({}, LossDenominator::kHf), 0);
}

}  // namespace
}  // namespace traind
