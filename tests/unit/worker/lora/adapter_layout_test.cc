#include "worker/lora/adapter_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/status/errors.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

ModelConfig Config() {
  ModelConfig config;
  config.vocab_size = 50;
  config.hidden_size = 12;
  config.intermediate_size = 20;
  config.num_hidden_layers = 12;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 3;
  return config;
}

LoraOptions Targets(std::vector<std::string> targets, bool regex = false) {
  LoraOptions options;
  options.r = 4;
  options.target_modules = std::move(targets);
  options.target_is_regex = regex;
  return options;
}

std::vector<std::string> NamesHit(const LoraOptions& options) {
  const absl::StatusOr<AdapterLayout> layout = BuildAdapterLayout(Config(), options);
  EXPECT_TRUE(layout.ok()) << layout.status();
  std::vector<std::string> names;
  if (layout.ok()) {
    for (const LoraModule& module : layout->modules) names.push_back(module.name);
  }
  return names;
}

TEST(AdapterLayoutTest, NothingGivenMeansQueryAndValue) {
  const std::vector<std::string> names = NamesHit(Targets({}));
  ASSERT_THAT(names, SizeIs(24));
  EXPECT_EQ(names[0], "model.layers.0.self_attn.q_proj");
  EXPECT_EQ(names[1], "model.layers.0.self_attn.v_proj");
}

TEST(AdapterLayoutTest, AListEntryHitsWholeNamePartsAtTheEnd) {
  EXPECT_THAT(NamesHit(Targets({"down_proj"})), SizeIs(12));
  EXPECT_THAT(NamesHit(Targets({"mlp.down_proj", "o_proj"})), SizeIs(24));
  EXPECT_THAT(NamesHit(Targets({"1.self_attn.q_proj"})),
              ElementsAre("model.layers.1.self_attn.q_proj"));  // Not layer 11.
  EXPECT_THAT(NamesHit(Targets({"model.layers.3.mlp.up_proj"})),
              ElementsAre("model.layers.3.mlp.up_proj"));
}

TEST(AdapterLayoutTest, AnEntryThatIsOnlyTheTailOfAPartHitsNothing) {
  const absl::Status status = BuildAdapterLayout(Config(), Targets({"proj"})).status();
  EXPECT_EQ(ReasonOf(status), Reason::kTargetModulesNotFound);
}

TEST(AdapterLayoutTest, ARegularExpressionHasToMatchTheWholeName) {
  EXPECT_THAT(NamesHit(Targets({R"(.*\.layers\.(2|5)\.self_attn\.[qk]_proj)"}, true)),
              ElementsAre("model.layers.2.self_attn.q_proj", "model.layers.2.self_attn.k_proj",
                          "model.layers.5.self_attn.q_proj", "model.layers.5.self_attn.k_proj"));
  EXPECT_EQ(ReasonOf(BuildAdapterLayout(Config(), Targets({"q_proj"}, true)).status()),
            Reason::kTargetModulesNotFound);
}

TEST(AdapterLayoutTest, AllLinearHitsEveryLayerButTheHeadInAnyCase) {
  EXPECT_THAT(NamesHit(Targets({"all-linear"})), SizeIs(12 * 7));
  EXPECT_THAT(NamesHit(Targets({"All-Linear"})), SizeIs(12 * 7));
}

TEST(AdapterLayoutTest, ABadExpressionIsAFieldError) {
  const absl::Status status = BuildAdapterLayout(Config(), Targets({"(q_proj"}, true)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_THAT(FieldViolationsOf(status), SizeIs(1));
  EXPECT_EQ(FieldViolationsOf(status)[0].field, "lora.target_modules");
}

TEST(AdapterLayoutTest, AnExpensiveExpressionEnds) {
  EXPECT_FALSE(BuildAdapterLayout(Config(), Targets({"((.*)*)*x"}, true)).ok());
}

TEST(AdapterLayoutTest, NothingHitListsWhatExists) {
  const absl::Status status = BuildAdapterLayout(Config(), Targets({"c_attn", "query"})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), Reason::kTargetModulesNotFound);
  EXPECT_EQ(MetadataOf(status, "target_modules"), "c_attn, query");
  EXPECT_EQ(MetadataOf(status, "available"),
            "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj");
  EXPECT_THAT(std::string(status.message()), HasSubstr("gate_proj"));
}

TEST(AdapterLayoutTest, EntriesWithoutAHitAreNamed) {
  const absl::StatusOr<AdapterLayout> layout =
      BuildAdapterLayout(Config(), Targets({"q_proj", "c_attn"}));
  ASSERT_TRUE(layout.ok());
  EXPECT_THAT(layout->unused_targets, ElementsAre("c_attn"));
  EXPECT_THAT(BuildAdapterLayout(Config(), Targets({"q_proj"}))->unused_targets, IsEmpty());
}

TEST(AdapterLayoutTest, TheHeadAndTheEmbeddingsCannotBeAdapted) {
  for (const std::vector<std::string>& targets :
       {std::vector<std::string>{"q_proj", "lm_head"}, {"embed_tokens"}}) {
    const absl::Status status = BuildAdapterLayout(Config(), Targets(targets)).status();
    EXPECT_EQ(ReasonOf(status), Reason::kInvalidField) << targets.back();
  }
  EXPECT_EQ(ReasonOf(BuildAdapterLayout(Config(), Targets({".*"}, true)).status()),
            Reason::kInvalidField);
}

TEST(AdapterLayoutTest, AllWrongNumbersAreNamedAtOnce) {
  LoraOptions options = Targets({"q_proj"});
  options.r = 0;
  options.lora_alpha = std::nan("");
  options.lora_dropout = 1;
  const absl::Status status = BuildAdapterLayout(Config(), options).status();
  EXPECT_THAT(FieldViolationsOf(status), SizeIs(3)) << status;
}

// Every number of the flat buffer belongs to exactly one matrix, and A's of q, k and v adjoin.
TEST(AdapterLayoutTest, MatricesTileTheFlatBuffer) {
  const absl::StatusOr<AdapterLayout> layout =
      BuildAdapterLayout(Config(), Targets({"all-linear"}));
  ASSERT_TRUE(layout.ok());
  std::vector<int> owners(static_cast<size_t>(layout->size));
  const auto claim = [&](int64_t offset, int64_t size) {
    for (int64_t i = offset; i < offset + size; ++i) ++owners.at(static_cast<size_t>(i));
  };
  for (const LoraModule& module : layout->modules) {
    claim(module.a_offset, 4 * module.in_features);
    claim(module.b_offset, 4 * module.out_features);
  }
  EXPECT_EQ(std::count(owners.begin(), owners.end(), 1), layout->size);
  EXPECT_EQ(layout->modules[1].a_offset, layout->modules[0].a_offset + 4 * 12);
  EXPECT_EQ(layout->modules[2].a_offset, layout->modules[0].a_offset + 2 * 4 * 12);
  EXPECT_EQ(layout->modules[6].in_features, 20);
  EXPECT_EQ(layout->modules[6].out_features, 12);
}

TEST(LoraOptionsTest, ScalingIsAlphaOverRankOrItsRoot) {
  LoraOptions options;
  options.r = 16;
  options.lora_alpha = 32;
  EXPECT_EQ(options.scaling(), 2);
  options.use_rslora = true;
  EXPECT_EQ(options.scaling(), 8);
}

TEST(InitializeLoraTest, AIsUniformWithinPeftsBoundAndBIsZero) {
  Adapter adapter(*BuildAdapterLayout(Config(), Targets({"all-linear"})));
  InitializeLora(adapter);
  for (const LoraModule& module : adapter.layout().modules) {
    const double bound = 1 / std::sqrt(static_cast<double>(module.in_features));
    double square_sum = 0;
    for (int64_t i = 0; i < 4 * module.in_features; ++i) {
      const double value =
          static_cast<double>(adapter.parameters()[static_cast<size_t>(module.a_offset + i)]);
      EXPECT_LE(std::abs(value), bound);
      square_sum += value * value;
    }
    const double deviation = std::sqrt(square_sum / static_cast<double>(4 * module.in_features));
    EXPECT_NEAR(deviation, bound / std::sqrt(3.0), 0.35 * bound) << module.name;
    for (int64_t i = 0; i < 4 * module.out_features; ++i) {
      EXPECT_EQ(adapter.parameters()[static_cast<size_t>(module.b_offset + i)], 0);
    }
  }
}

TEST(InitializeLoraTest, TheSeedDecidesTheNumbers) {
  const auto parameters = [](uint64_t seed) {
    LoraOptions options = Targets({});
    options.seed = seed;
    Adapter adapter(*BuildAdapterLayout(Config(), options));
    InitializeLora(adapter);
    return std::vector<float>(adapter.parameters().begin(), adapter.parameters().end());
  };
  EXPECT_EQ(parameters(1), parameters(1));
  EXPECT_NE(parameters(1), parameters(2));
}

TEST(InitializeLoraTest, WithoutLoraInitBIsAlive) {
  LoraOptions options = Targets({"q_proj"});
  options.init_lora_weights = false;
  Adapter adapter(*BuildAdapterLayout(Config(), options));
  InitializeLora(adapter);
  const LoraModule& module = adapter.layout().modules[0];
  EXPECT_NE(adapter.parameters()[static_cast<size_t>(module.b_offset)], 0);
}

}  // namespace
}  // namespace traind
