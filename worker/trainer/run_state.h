// Where a run stands: everything besides the adapter and its moments that a resumed run needs.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace traind {

// Sums over the updates since the last report of the loss.
struct PendingLog {
  double loss_sum = 0;  // Of the updates' losses.
  int64_t losses = 0;
  int64_t tokens = 0;
  int64_t supervised_tokens = 0;
};

// The order of rows and the dropout masks follow from `step`, so no random state is kept.
struct RunState {
  // Windows of micro-batches done: the position in the plan, and what users see as the step.
  int64_t step = 0;
  // Updates that the optimizer made; less than `step` if windows were skipped. The learning rate
  // and AdamW's bias correction follow from it.
  int64_t updates = 0;
  // Windows in a row, up to `step`, whose loss or gradient was not finite.
  int64_t nonfinite_in_a_row = 0;
  PendingLog pending;
};

// As a JSON object; doubles keep every bit.
std::string RunStateToJson(const RunState& state);

// Errors: CHECKPOINT_CORRUPT, naming the field that is missing or wrong.
absl::StatusOr<RunState> RunStateFromJson(absl::string_view json);

}  // namespace traind
