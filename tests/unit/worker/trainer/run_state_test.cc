#include "worker/trainer/run_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/status/errors.h"

namespace traind {
namespace {

RunState Sample() {
  RunState state;
  state.step = 12;
  state.updates = 11;
  state.nonfinite_in_a_row = 1;
  state.pending = {0.1 + 0.2, 3, 400, 300};
  return state;
}

TEST(RunStateTest, EveryBitComesBack) {
  const RunState state = Sample();
  const auto back = RunStateFromJson(RunStateToJson(state));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->step, 12);
  EXPECT_EQ(back->updates, 11);
  EXPECT_EQ(back->nonfinite_in_a_row, 1);
  EXPECT_EQ(back->pending.loss_sum, state.pending.loss_sum);
  EXPECT_EQ(back->pending.losses, 3);
  EXPECT_EQ(back->pending.tokens, 400);
  EXPECT_EQ(back->pending.supervised_tokens, 300);
}

TEST(RunStateTest, ALossThatIsNotANumberComesBack) {
  RunState state = Sample();
  state.pending.loss_sum = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(RunStateFromJson(RunStateToJson(state))->pending.loss_sum));
  state.pending.loss_sum = std::numeric_limits<double>::infinity();
  EXPECT_EQ(RunStateFromJson(RunStateToJson(state))->pending.loss_sum, state.pending.loss_sum);
}

TEST(RunStateTest, ADamagedStateIsCorruptAndNamesTheField) {
  for (const char* text : {"", "[]", "{", "null"}) {
    EXPECT_EQ(ReasonOf(RunStateFromJson(text).status()), Reason::kCheckpointCorrupt) << text;
  }
  std::string text = RunStateToJson(Sample());
  text.replace(text.find("\"updates\": 11"), 13, "\"updates\": -1");
  EXPECT_EQ(MetadataOf(RunStateFromJson(text).status(), "field"), "updates");
}

}  // namespace
}  // namespace traind
