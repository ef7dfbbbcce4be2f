// The explicit backward against LibTorch's autograd in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/fake_weight_source.h"
#include "tests/unit/worker/model/autograd_llama.h"
#include "worker/model/causal_lm.h"

namespace traind {
namespace {

constexpr double kBar = 1e-4;
constexpr uint32_t kSeed = 20240607;

// Rows of the given lengths with random ids; three of four positions are trained.
PackedBatch RandomBatch(const std::vector<int>& lengths, int64_t vocab_size) {
  std::mt19937 generator(kSeed);
  std::vector<Example> examples;
  for (const int length : lengths) {
    Example example;
    for (int i = 0; i < length; ++i) {
      example.input_ids.push_back(
          static_cast<int32_t>(generator() % static_cast<uint32_t>(vocab_size)));
      example.supervised.push_back(i % 4 != 1);
    }
    examples.push_back(std::move(example));
  }
  std::vector<const Example*> pointers;
  for (const Example& example : examples) pointers.push_back(&example);
  return PackExamples(pointers);
}

// An adapter whose A and B are both random, so that every gradient is alive.
std::unique_ptr<Adapter> RandomAdapter(const ModelConfig& config, const LoraOptions& options) {
  absl::StatusOr<AdapterLayout> layout = BuildAdapterLayout(config, options);
  EXPECT_TRUE(layout.ok()) << layout.status();
  auto adapter = std::make_unique<Adapter>(*std::move(layout));
  std::mt19937 generator(kSeed + 1);
  std::normal_distribution<float> normal(0, 0.3f);
  for (float& value : adapter->parameters()) value = normal(generator);
  return adapter;
}

double Norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

// Largest relative L2 error over all matrices.
double WorstMatrixError(const AdapterLayout& layout, absl::Span<const float> actual,
                        const std::vector<double>& expected) {
  double worst = 0;
  const auto check = [&](int64_t offset, int64_t size, const std::string& name) {
    std::vector<double> difference;
    std::vector<double> reference;
    for (int64_t i = offset; i < offset + size; ++i) {
      const size_t at = static_cast<size_t>(i);
      reference.push_back(expected[at]);
      difference.push_back(static_cast<double>(actual[at]) - expected[at]);
    }
    EXPECT_GT(Norm(reference), 0) << name << ": the oracle has no gradient";
    const double error = Norm(difference) / Norm(reference);
    EXPECT_LE(error, kBar) << name;
    worst = std::max(worst, error);
  };
  for (const LoraModule& module : layout.modules) {
    check(module.a_offset, layout.options.r * module.in_features, module.name + " A");
    check(module.b_offset, layout.options.r * module.out_features, module.name + " B");
  }
  return worst;
}

struct GradientCase {
  std::string name;
  LoraOptions options;
  bool tied = false;
  int64_t head_dim = 6;
  std::vector<int> lengths = {7, 1, 23, 2, 60};
};

LoraOptions Lora(std::vector<std::string> targets, double dropout = 0, bool regex = false) {
  LoraOptions options;
  options.r = 5;
  options.lora_alpha = 8;
  options.lora_dropout = dropout;
  options.target_modules = std::move(targets);
  options.target_is_regex = regex;
  return options;
}

class CausalLmGradientTest : public testing::TestWithParam<GradientCase> {};

TEST_P(CausalLmGradientTest, EqualsAutograd) {
  const GradientCase& gradient_case = GetParam();
  ModelConfig config = UnevenLlamaConfig();
  config.tie_word_embeddings = gradient_case.tied;
  config.head_dim = gradient_case.head_dim;
  const FakeWeightSource weights(config, kSeed);
  const std::unique_ptr<Adapter> adapter = RandomAdapter(config, gradient_case.options);
  absl::StatusOr<std::unique_ptr<CausalLm>> model = CausalLm::Load(weights, adapter.get());
  ASSERT_TRUE(model.ok()) << model.status();
  const PackedBatch batch = RandomBatch(gradient_case.lengths, config.vocab_size);
  const DropoutKey key{7, 3, 1};

  const absl::StatusOr<LossSum> loss = (*model)->ForwardBackward(batch, 40, key);

  ASSERT_TRUE(loss.ok()) << loss.status();
  const AutogradResult expected = AutogradLoss(weights, *adapter, batch, 40, key);
  const double loss_error = std::abs(loss->nll_sum - expected.nll_sum) / expected.nll_sum;
  const double worst =
      WorstMatrixError(adapter->layout(), adapter->gradients(), expected.gradients);
  std::cout << "loss: relative error " << loss_error << ", gradients: worst relative error "
            << worst << " (bar " << kBar << ", seed " << kSeed << ")\n";
  EXPECT_LE(loss_error, kBar);
}

INSTANTIATE_TEST_SUITE_P(
    All, CausalLmGradientTest,
    testing::Values(
        GradientCase{"AllLinear", Lora({"all-linear"})},
        GradientCase{"AllLinearTied", Lora({"all-linear"}), true},
        GradientCase{"AllLinearHeadDim16", Lora({"all-linear"}), false, 16},
        GradientCase{"QueryAndValue", Lora({"q_proj", "v_proj"})},
        GradientCase{"KeyOnly", Lora({"k_proj"})},
        GradientCase{"UpperLayersDown", Lora({R"(model\.layers\.[12]\.mlp\.down_proj)"}, 0, true)},
        GradientCase{"MixedStages", Lora({R"(.*(1\.self_attn\.o|2\.mlp\.gate)_proj)"}, 0, true)},
        GradientCase{"GateAndUp", Lora({"gate_proj", "up_proj"})},
        GradientCase{"Dropout", Lora({"all-linear"}, 0.3)},
        GradientCase{"DropoutQueryAndValue", Lora({"q_proj", "v_proj"}, 0.5)},
        GradientCase{"LongRow", Lora({"all-linear"}), false, 6, {150}}),
    [](const auto& instance) { return instance.param.name; });

TEST(CausalLmAccumulationTest, GradientsOfMicroBatchesAddUp) {
  const ModelConfig config = UnevenLlamaConfig();
  const FakeWeightSource weights(config, kSeed);
  const std::unique_ptr<Adapter> adapter = RandomAdapter(config, Lora({"all-linear"}));
  absl::StatusOr<std::unique_ptr<CausalLm>> model = CausalLm::Load(weights, adapter.get());
  ASSERT_TRUE(model.ok()) << model.status();
  const PackedBatch batch = RandomBatch({9, 4}, config.vocab_size);
  ASSERT_TRUE((*model)->ForwardBackward(batch, 10, {}).ok());
  const std::vector<float> once(adapter->gradients().begin(), adapter->gradients().end());

  ASSERT_TRUE((*model)->ForwardBackward(batch, 10, {}).ok());

  for (size_t i = 0; i < once.size(); ++i) {
    ASSERT_NEAR(adapter->gradients()[i], 2 * once[i], 1e-5 * (1 + std::abs(once[i]))) << i;
  }
}

}  // namespace
}  // namespace traind
