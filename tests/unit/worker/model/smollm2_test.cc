// SmolLM2-135M from its GGUF file against Transformers (tests/golden/parity/make_smollm2.py).
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/smollm2_path.h"
#include "tests/unit/worker/model/golden.h"
#include "worker/model/causal_lm.h"

namespace traind {
namespace {

constexpr double kBar = 1e-3;

class SmolLm2Test : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<WeightSource>> weights = OpenWeights(SmolLm2Path());
    ASSERT_TRUE(weights.ok()) << weights.status() << "\n`make bootstrap` fetches the file; "
                              << "TRAIND_SMOLLM2_GGUF names another place.";
    absl::StatusOr<std::unique_ptr<CausalLm>> model = CausalLm::Load(**weights, nullptr);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    reference_ = ReadGolden("smollm2/reference.json");
  }

  void ExpectLoss(const char* text) {
    const auto& expected = reference_[text];
    const absl::StatusOr<LossSum> loss =
        model_->Evaluate(Pack({FullySupervised(expected["ids"].get<std::vector<int32_t>>())}));
    ASSERT_TRUE(loss.ok()) << loss.status();
    EXPECT_EQ(loss->targets, expected["targets"].get<int64_t>());
    const double perplexity = std::exp(loss->nll_sum / static_cast<double>(loss->targets));
    const double reference = expected["perplexity"].get<double>();
    const double error = std::abs(perplexity - reference) / reference;
    std::cout << text << ": perplexity " << perplexity << ", reference " << reference
              << ", relative error " << error << " (bar " << kBar << ")\n";
    EXPECT_LE(error, kBar);
  }

  std::unique_ptr<CausalLm> model_;
  nlohmann::json reference_;
};

// q/k rows that are not un-permuted still read like a language model; the number tells.
TEST_F(SmolLm2Test, PerplexityEqualsTransformers) {
  ExpectLoss("paragraph");
  ExpectLoss("shuffled");
}

TEST_F(SmolLm2Test, GreedyAnswerNamesRome) {
  const auto& chat = reference_["chat"];
  const absl::StatusOr<std::vector<int32_t>> answer =
      model_->GenerateGreedy(chat["prompt_ids"].get<std::vector<int32_t>>(), 20,
                             chat["stop_ids"].get<std::vector<int32_t>>());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(chat["answer"].get<std::string>(), "The capital of Italy is Rome.");
  EXPECT_EQ(*answer, chat["answer_ids"].get<std::vector<int32_t>>());
}

}  // namespace
}  // namespace traind
