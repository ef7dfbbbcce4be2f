#include "worker/data/packed_batch.h"

#include <cstddef>

namespace traind {
namespace {

void AppendRow(const Example& row, PackedBatch& batch) {
  const size_t length = row.input_ids.size();
  for (size_t i = 0; i < length; ++i) {
    const bool predicted = i + 1 < length && row.supervised[i + 1] != 0;
    batch.input_ids.push_back(row.input_ids[i]);
    batch.position_ids.push_back(static_cast<int32_t>(i));
    batch.targets.push_back(predicted ? row.input_ids[i + 1] : kIgnoreIndex);
    batch.supervised_tokens += predicted ? 1 : 0;
    batch.unshifted_labels += row.supervised[i] != 0 ? 1 : 0;
  }
  batch.row_offsets.push_back(static_cast<int32_t>(batch.input_ids.size()));
}

}  // namespace

PackedBatch PackExamples(const std::vector<const Example*>& examples) {
  size_t tokens = 0;
  for (const Example* example : examples) tokens += example->input_ids.size();

  PackedBatch batch;
  batch.input_ids.reserve(tokens);
  batch.position_ids.reserve(tokens);
  batch.targets.reserve(tokens);
  batch.row_offsets.reserve(examples.size() + 1);
  batch.row_offsets.push_back(0);
  for (const Example* example : examples) AppendRow(*example, batch);
  return batch;
}

}  // namespace traind
