// An adapter gives the same logits in PEFT and in the worker.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/os/file.h"
#include "worker/export/peft_adapter.h"
#include "worker/lora/adapter_layout.h"
#include "worker/model/causal_lm.h"
#include "worker/model/weight_source.h"

namespace traind {
namespace {

constexpr double kTolerance = 1e-4;
const std::string kGolden = TRAIND_TEST_DATA "/golden/";

PackedBatch OneRow(const std::vector<int32_t>& ids) {
  PackedBatch batch;
  batch.input_ids = ids;
  for (size_t i = 0; i < ids.size(); ++i) batch.position_ids.push_back(static_cast<int32_t>(i));
  batch.targets.assign(ids.size(), kIgnoreIndex);
  batch.row_offsets = {0, static_cast<int32_t>(ids.size())};
  return batch;
}

// logits.json holds what PEFT computes with tests/golden/adapter, see check_adapter.py.
TEST(AdapterLogitsTest, WorkerAndPeftAgree) {
  const auto golden = nlohmann::json::parse(*ReadFile(kGolden + "adapter/logits.json"));
  const auto weights = OpenWeights(kGolden + "weights/tinyllama");
  ASSERT_TRUE(weights.ok()) << weights.status();
  LoraOptions options;
  options.r = 2;
  options.lora_alpha = 4;
  options.target_modules = {"q_proj", "v_proj"};
  const auto layout = BuildAdapterLayout((*weights)->config(), options);
  ASSERT_TRUE(layout.ok()) << layout.status();
  Adapter adapter(*layout);
  const absl::Status read = ReadPeftAdapter(kGolden + "adapter", *layout, adapter.parameters());
  ASSERT_TRUE(read.ok()) << read;
  const auto model = CausalLm::Load(**weights, &adapter);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto logits = (*model)->Logits(OneRow(golden["input_ids"].get<std::vector<int32_t>>()));
  ASSERT_TRUE(logits.ok()) << logits.status();

  std::vector<double> expected;
  for (const auto& row : golden["logits"]) {
    for (const auto& value : row) expected.push_back(value.get<double>());
  }
  ASSERT_EQ(logits->size(), expected.size());
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs((*logits)[i] - expected[i]));
  }
  std::printf("max abs difference %.2e (tolerance %.0e)\n", worst, kTolerance);
  EXPECT_LE(worst, kTolerance);
}

}  // namespace
}  // namespace traind
