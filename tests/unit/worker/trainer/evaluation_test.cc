#include "worker/trainer/evaluation.h"

#include <gtest/gtest.h>

#include "common/status/errors.h"
#include "tests/support/fake_causal_lm.h"

namespace traind {
namespace {

// A row of `ids` whose tokens from `first` on are trained.
Example Row(std::vector<int32_t> ids, size_t first) {
  Example row;
  row.supervised.assign(ids.size(), 0);
  for (size_t i = first; i < ids.size(); ++i) row.supervised[i] = 1;
  row.input_ids = std::move(ids);
  return row;
}

class EvaluationTest : public testing::Test {
 protected:
  Adapter adapter_{FakeCausalLm::Layout()};
  FakeCausalLm model_{&adapter_};
  StopFlag stop_;
};

// Losses by hand, w = 0: a target t costs 0.5 * (0.01 t)^2, so 100 → 0.5, 200 → 2.
TEST_F(EvaluationTest, WeighsBatchMeansByRowsAndTokensByTokens) {
  const std::vector<Example> rows = {Row({1, 100, 100, 100}, 1), Row({2, 200}, 1),
                                     Row({3, 200}, 1)};
  const auto metrics = EvaluateRows(model_, rows, 2, stop_);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  // Batch 1: (3 * 0.5 + 2) / 4 = 0.875 with 2 rows; batch 2: 2 with 1 row.
  EXPECT_NEAR(metrics->loss(), (0.875 * 2 + 2) / 3, 1e-12);
  EXPECT_NEAR(metrics->loss_token(), (3 * 0.5 + 2 + 2) / 5, 1e-12);
  EXPECT_EQ(metrics->supervised_tokens(), 5);
  EXPECT_EQ(metrics->rows(), 3);
  EXPECT_EQ(model_.evaluated, (std::vector<std::vector<int32_t>>{{1, 2}, {3}}));
}

TEST_F(EvaluationTest, ARowWithoutATargetIsLeftOutWhereverItStands) {
  for (const size_t at : {size_t{0}, size_t{1}, size_t{2}}) {
    std::vector<Example> rows = {Row({1, 100}, 1), Row({2, 200}, 1)};
    rows.insert(rows.begin() + static_cast<int64_t>(at), Row({9, 9}, 2));
    const auto metrics = EvaluateRows(model_, rows, 1, stop_);
    ASSERT_TRUE(metrics.ok()) << metrics.status();
    EXPECT_NEAR(metrics->loss(), 1.25, 1e-12) << at;
    EXPECT_EQ(metrics->rows(), 2);
  }
}

TEST_F(EvaluationTest, NoTargetAtAllIsAnErrorNotNaN) {
  const auto metrics = EvaluateRows(model_, {Row({9, 9}, 2)}, 1, stop_);
  EXPECT_EQ(ReasonOf(metrics.status()), Reason::kNoSupervisedTokens);
}

TEST_F(EvaluationTest, AStopEndsIt) {
  stop_.Request(StopKind::kStop);
  EXPECT_TRUE(absl::IsCancelled(EvaluateRows(model_, {Row({1, 100}, 1)}, 1, stop_).status()));
}

TEST_F(EvaluationTest, AnswersAreDecoded) {
  SampleQuestions samples;
  samples.questions = {{"hi", {7}, 3}};
  samples.decode = [](absl::Span<const int32_t> ids) -> absl::StatusOr<std::string> {
    return std::string(ids.size(), static_cast<char>('0' + ids[0]));
  };
  const auto answer = AnswerQuestion(model_, samples, 0);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->prompt(), "hi");
  EXPECT_EQ(answer->answer(), "777");
}

}  // namespace
}  // namespace traind
