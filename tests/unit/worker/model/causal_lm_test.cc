#include "worker/model/causal_lm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>
#include <vector>

#include "common/status/errors.h"
#include "tests/support/fake_weight_source.h"
#include "tests/unit/worker/model/golden.h"

namespace traind {
namespace {

constexpr double kBar = 1e-4;
constexpr uint32_t kSeed = 77;

std::unique_ptr<CausalLm> LoadOrDie(const WeightSource& weights, Adapter* adapter) {
  absl::StatusOr<std::unique_ptr<CausalLm>> model = CausalLm::Load(weights, adapter);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

std::unique_ptr<Adapter> MakeAdapter(const ModelConfig& config) {
  LoraOptions options;
  options.r = 4;
  options.target_modules = {"all-linear"};
  absl::StatusOr<AdapterLayout> layout = BuildAdapterLayout(config, options);
  EXPECT_TRUE(layout.ok()) << layout.status();
  auto adapter = std::make_unique<Adapter>(*std::move(layout));
  InitializeLora(*adapter);
  return adapter;
}

class TinyLlamaTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<WeightSource>> weights =
        OpenWeights(std::string(TRAIND_TEST_DATA) + "/golden/weights/tinyllama");
    ASSERT_TRUE(weights.ok()) << weights.status();
    weights_ = *std::move(weights);
    model_ = LoadOrDie(*weights_, nullptr);
    reference_ = ReadGolden("tinyllama/reference.json");
    for (const auto& document : reference_["docs"]) {
      documents_.push_back(FullySupervised(document["ids"].get<std::vector<int32_t>>()));
    }
  }

  std::unique_ptr<WeightSource> weights_;
  std::unique_ptr<CausalLm> model_;
  nlohmann::json reference_;
  std::vector<Example> documents_;
};

TEST_F(TinyLlamaTest, LossesOfDocumentsEqualTheReference) {
  double worst = 0;
  for (size_t i = 0; i < documents_.size(); ++i) {
    const absl::StatusOr<LossSum> loss = model_->Evaluate(Pack({documents_[i]}));
    ASSERT_TRUE(loss.ok()) << loss.status();
    const auto& expected = reference_["docs"][i];
    worst = std::max(worst, std::abs(loss->nll_sum - expected["nll_sum"].get<double>()));
    EXPECT_EQ(loss->targets, expected["targets"].get<int64_t>());
  }
  std::cout << "worst difference " << worst << " (bar " << kBar << ")\n";
  EXPECT_LE(worst, kBar);
}

// C13: a pack's loss is the sum of its documents' own losses.
TEST_F(TinyLlamaTest, PackedLossIsTheSumOfTheDocuments) {
  const absl::StatusOr<LossSum> loss = model_->Evaluate(Pack(documents_));
  ASSERT_TRUE(loss.ok()) << loss.status();
  const auto& all = reference_["all"];
  double worst = std::abs(loss->nll_sum - all["nll_sum"].get<double>());
  for (size_t i = 0; i < documents_.size(); ++i) {
    const double expected = reference_["docs"][i]["nll_sum"].get<double>();
    worst = std::max(worst, std::abs(loss->row_nll_sum[i] - expected));
    EXPECT_EQ(loss->row_targets[i], reference_["docs"][i]["targets"].get<int64_t>());
  }
  std::cout << "worst difference " << worst << " (bar " << kBar << ")\n";
  EXPECT_LE(worst, kBar);
  EXPECT_EQ(loss->targets, all["targets"].get<int64_t>());
}

TEST_F(TinyLlamaTest, LogitsEqualTheReference) {
  const PackedBatch batch = Pack({documents_[0]});
  const absl::StatusOr<std::vector<float>> logits = model_->Logits(batch);
  ASSERT_TRUE(logits.ok()) << logits.status();
  const int64_t vocab_size = model_->config().vocab_size;
  ASSERT_EQ(static_cast<int64_t>(logits->size()), batch.tokens() * vocab_size);
  const float* last = logits->data() + (batch.tokens() - 1) * vocab_size;
  double worst = 0;
  const auto& expected = reference_["logits_doc0_last_position_first8"];
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(last[i]) - expected[i].get<double>()));
  }
  std::cout << "worst difference " << worst << " (bar " << kBar << ")\n";
  EXPECT_LE(worst, kBar);
}

// C19: with a head of zeros every token costs ln V, trained or evaluated, packed or not.
TEST(ConstantModelTest, LossIsTheLogarithmOfTheVocabulary) {
  FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  std::vector<float>& head = weights.tensor("lm_head.weight");
  std::fill(head.begin(), head.end(), 0.0f);
  const std::unique_ptr<Adapter> adapter = MakeAdapter(weights.config());
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, adapter.get());
  const PackedBatch batch = Pack({FullySupervised({1, 2, 3, 4}), FullySupervised({5, 6, 7})});
  const double expected = std::log(static_cast<double>(weights.config().vocab_size));

  const absl::StatusOr<LossSum> trained = model->ForwardBackward(batch, 5, {});
  const absl::StatusOr<LossSum> evaluated = model->Evaluate(batch);

  ASSERT_TRUE(trained.ok() && evaluated.ok());
  EXPECT_NEAR(trained->nll_sum / static_cast<double>(trained->targets), expected, kBar);
  EXPECT_NEAR(evaluated->nll_sum / static_cast<double>(evaluated->targets), expected, kBar);
}

TEST(CausalLmTest, EvaluateEqualsTheTrainingLossWithoutDropout) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  const std::unique_ptr<Adapter> adapter = MakeAdapter(weights.config());
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, adapter.get());
  const PackedBatch batch = Pack({FullySupervised({1, 2, 3, 4}), FullySupervised({5, 6, 7})});
  const absl::StatusOr<LossSum> trained = model->ForwardBackward(batch, 5, {});
  const absl::StatusOr<LossSum> evaluated = model->Evaluate(batch);
  ASSERT_TRUE(trained.ok() && evaluated.ok());
  EXPECT_EQ(trained->nll_sum, evaluated->nll_sum);
  EXPECT_EQ(trained->row_nll_sum, evaluated->row_nll_sum);
}

TEST(CausalLmTest, AFreshAdapterDoesNotChangeTheLogits) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  const std::unique_ptr<Adapter> adapter = MakeAdapter(weights.config());
  const PackedBatch batch = Pack({FullySupervised({9, 8, 7})});
  EXPECT_EQ(*LoadOrDie(weights, adapter.get())->Logits(batch),
            *LoadOrDie(weights, nullptr)->Logits(batch));
}

TEST(CausalLmTest, TheSameStepTwiceGivesTheSameBits) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  const std::unique_ptr<Adapter> adapter = MakeAdapter(weights.config());
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, adapter.get());
  const PackedBatch batch = Pack({FullySupervised({1, 2, 3, 4}), FullySupervised({5, 6, 7})});
  ASSERT_TRUE(model->ForwardBackward(batch, 5, {}).ok());
  const std::vector<float> first(adapter->gradients().begin(), adapter->gradients().end());
  std::fill(adapter->gradients().begin(), adapter->gradients().end(), 0.0f);
  ASSERT_TRUE(model->ForwardBackward(batch, 5, {}).ok());
  EXPECT_EQ(first, std::vector<float>(adapter->gradients().begin(), adapter->gradients().end()));
}

TEST(CausalLmTest, ABatchWithoutTargetsAddsNothing) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  const std::unique_ptr<Adapter> adapter = MakeAdapter(weights.config());
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, adapter.get());
  Example silent = FullySupervised({1, 2, 3});
  silent.supervised.assign(3, 0);
  const absl::StatusOr<LossSum> loss = model->ForwardBackward(Pack({silent}), 1, {});
  ASSERT_TRUE(loss.ok()) << loss.status();
  EXPECT_EQ(loss->targets, 0);
  EXPECT_EQ(loss->nll_sum, 0);
  EXPECT_TRUE(std::all_of(adapter->gradients().begin(), adapter->gradients().end(),
                          [](float g) { return g == 0; }));
}

TEST(CausalLmTest, GreedyAnswerEqualsTheLikeliestTokensOfTheWholeText) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed, 0.5f);
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, nullptr);
  const int64_t vocab_size = weights.config().vocab_size;
  std::vector<int32_t> text = {3, 1, 4, 1, 5};
  const std::vector<int32_t> prompt = text;
  std::vector<int32_t> expected;
  for (int i = 0; i < 12; ++i) {
    const std::vector<float> logits = *model->Logits(Pack({FullySupervised(text)}));
    const auto last = logits.end() - vocab_size;
    expected.push_back(static_cast<int32_t>(std::max_element(last, logits.end()) - last));
    text.push_back(expected.back());
  }

  EXPECT_EQ(*model->GenerateGreedy(prompt, 12, {}), expected);
  // An id that stops is left out.
  const auto stop = std::find(expected.begin(), expected.end(), expected[4]);
  EXPECT_EQ(*model->GenerateGreedy(prompt, 12, {expected[4]}),
            std::vector<int32_t>(expected.begin(), stop));
  EXPECT_TRUE(model->GenerateGreedy(prompt, 0, {})->empty());
}

TEST(CausalLmTest, RefusesIdsOutsideTheVocabulary) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, nullptr);
  const absl::Status status = model->Evaluate(Pack({FullySupervised({1, 37, 3})})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), Reason::kDatasetInvalid);
  EXPECT_NE(status.message().find("37"), absl::string_view::npos) << status;
  EXPECT_FALSE(model->GenerateGreedy({-1}, 3, {}).ok());
  EXPECT_FALSE(model->GenerateGreedy({}, 3, {}).ok());
}

TEST(CausalLmTest, RefusesRowsThatDoNotCoverTheTokens) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, nullptr);
  PackedBatch batch = Pack({FullySupervised({1, 2, 3})});
  batch.row_offsets = {0, 2};
  EXPECT_EQ(ReasonOf(model->Evaluate(batch).status()), Reason::kDatasetInvalid);
  batch.row_offsets = {0, 3};
  batch.position_ids.pop_back();
  EXPECT_EQ(ReasonOf(model->Evaluate(batch).status()), Reason::kDatasetInvalid);
}

TEST(CausalLmTest, TrainingWithoutAnAdapterIsAnError) {
  const FakeWeightSource weights(UnevenLlamaConfig(), kSeed);
  const std::unique_ptr<CausalLm> model = LoadOrDie(weights, nullptr);
  EXPECT_EQ(model->ForwardBackward(Pack({FullySupervised({1, 2})}), 1, {}).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace traind
