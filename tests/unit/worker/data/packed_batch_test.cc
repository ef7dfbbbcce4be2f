#include "worker/data/packed_batch.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/bytetok.h"
#include "worker/data/dataset.h"

namespace traind {
namespace {

using testing::ElementsAre;
using Json = nlohmann::ordered_json;

// Labels as the cases give them: the id itself where it is trained, before the shift.
Example FromLabels(const Json& ids, const Json& labels, size_t begin, size_t end) {
  Example example;
  for (size_t i = begin; i < end; ++i) {
    example.input_ids.push_back(ids[i]);
    example.supervised.push_back(labels[i] != kIgnoreIndex ? 1 : 0);
  }
  return example;
}

TEST(PackedBatchTest, TargetsAreShiftedAndEndWithEachRow) {
  const Example first = {{1, 10, 11, 2}, {0, 0, 1, 1}};
  const Example second = {{5, 6}, {1, 1}};
  const PackedBatch batch = PackExamples({&first, &second});
  EXPECT_THAT(batch.input_ids, ElementsAre(1, 10, 11, 2, 5, 6));
  EXPECT_THAT(batch.position_ids, ElementsAre(0, 1, 2, 3, 0, 1));
  EXPECT_THAT(batch.targets, ElementsAre(kIgnoreIndex, 11, 2, kIgnoreIndex, 6, kIgnoreIndex));
  EXPECT_THAT(batch.row_offsets, ElementsAre(0, 4, 6));
  EXPECT_EQ(batch.supervised_tokens, 3);
  EXPECT_EQ(batch.unshifted_labels, 4) << "the first token of the second row counts too";
  EXPECT_EQ(batch.rows(), 2);
  EXPECT_EQ(batch.tokens(), 6);
}

TEST(PackedBatchTest, AnEmptyRowAndARowOfOneTokenHaveNoTarget) {
  const Example empty;
  const Example one = {{7}, {1}};
  const PackedBatch batch = PackExamples({&empty, &one});
  EXPECT_THAT(batch.targets, ElementsAre(kIgnoreIndex));
  EXPECT_THAT(batch.row_offsets, ElementsAre(0, 0, 1));
  EXPECT_EQ(batch.supervised_tokens, 0);
}

// Case C13: documents of one pack keep their own positions and no target crosses a border.
TEST(PackedBatchTest, DocumentsKeepPositionsAndTargetsOfTheirOwn) {
  const Json expected = GoldenJson("cases/C13/expected.json");
  const TextModel model = Bytetok({{"add_bos_token", true}});
  const auto dataset = LoadDataset({{GoldenPath("cases/C13/docs.jsonl"), RowFormat::kAuto}}, model,
                                   DatasetOptions());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<const Example*> rows;
  for (const Example& example : dataset->examples) rows.push_back(&example);
  const PackedBatch batch = PackExamples(rows);
  EXPECT_EQ(batch.input_ids, expected["ids"].get<std::vector<int32_t>>());
  EXPECT_EQ(batch.position_ids, expected["position_ids"].get<std::vector<int32_t>>());
  EXPECT_EQ(batch.supervised_tokens, expected["losses"]["right"]["targets"].get<int64_t>());
  const Json& labels = expected["labels"];
  for (size_t t = 0; t + 1 < labels.size(); ++t) {
    EXPECT_EQ(batch.targets[t], labels[t + 1].get<int32_t>()) << "position " << t;
  }
  EXPECT_EQ(batch.targets.back(), kIgnoreIndex);
}

// Case C15: without padding all tensors have the documents' length and the same 11 targets.
TEST(PackedBatchTest, RowsAreNotPadded) {
  const Json expected = GoldenJson("cases/C15/expected.json");
  const Example first = FromLabels(expected["input_ids"], expected["labels"], 0, 5);
  const Example second = FromLabels(expected["input_ids"], expected["labels"], 5, 13);
  const PackedBatch batch = PackExamples({&first, &second});
  const auto length = expected["unpadded_length"].get<size_t>();
  EXPECT_EQ(batch.input_ids.size(), length);
  EXPECT_EQ(batch.position_ids.size(), length);
  EXPECT_EQ(batch.targets.size(), length);
  EXPECT_EQ(batch.supervised_tokens, expected["targets"].get<int64_t>());
}

}  // namespace
}  // namespace traind
