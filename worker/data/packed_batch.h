// Rows as the model takes them: several rows of different lengths in one flat run of tokens,
// without padding. Attention never crosses a row's end.
#pragma once

#include <cstdint>
#include <vector>

namespace traind {

inline constexpr int32_t kIgnoreIndex = -100;  // A position that is not trained, as in PyTorch.

// One row after tokenisation and truncation.
struct Example {
  std::vector<int32_t> input_ids;
  // Parallel to input_ids: 1 where the token is a label (before the shift), else 0.
  std::vector<uint8_t> supervised;
};

// One micro-batch.
struct PackedBatch {
  std::vector<int32_t> input_ids;     // [tokens]
  std::vector<int32_t> position_ids;  // [tokens]; restarts at 0 with each row.
  // [tokens]; the id to predict from this position, or kIgnoreIndex. Already shifted: targets[t]
  // belongs to input_ids[t], and a row's last position is always kIgnoreIndex.
  std::vector<int32_t> targets;
  std::vector<int32_t> row_offsets;  // [rows + 1]; row i is [row_offsets[i], row_offsets[i + 1]).
  int64_t supervised_tokens = 0;     // Targets that are not kIgnoreIndex.
  // Labels that are not masked, counted before the shift, as Transformers counts
  // `num_items_in_batch`: a row whose first token is supervised counts one more.
  int64_t unshifted_labels = 0;

  int64_t tokens() const { return static_cast<int64_t>(input_ids.size()); }
  int64_t rows() const { return static_cast<int64_t>(row_offsets.size()) - 1; }
};

// Concatenates rows. REQUIRES: `examples` not empty, no null.
PackedBatch PackExamples(const std::vector<const Example*>& examples);

}  // namespace traind
