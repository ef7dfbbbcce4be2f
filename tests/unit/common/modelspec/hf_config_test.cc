#include "common/modelspec/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/modelspec/model_tensors.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

json TinyLlama() {
  return json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "hidden_size": 256, "intermediate_size": 32, "num_hidden_layers": 2,
      "num_attention_heads": 4, "vocab_size": 266, "max_position_embeddings": 131072})");
}

json TinyMistral() {
  json config = TinyLlama();
  config["architectures"] = {"MistralForCausalLM"};
  config["model_type"] = "mistral";
  config["num_key_value_heads"] = 2;
  config["sliding_window"] = nullptr;
  return config;
}

// `base` with the fields of `changes` over it.
absl::StatusOr<ModelConfig> Parse(json base, const json& changes = json::object()) {
  base.update(changes);
  return ParseHfConfig(base.dump(), "config.json");
}

// The message of a failed parse without the path.
std::string ParseError(const json& base, const json& changes) {
  const auto config = Parse(base, changes);
  EXPECT_FALSE(config.ok()) << changes;
  EXPECT_EQ(ReasonOf(config.status()), Reason::kModelInvalid);
  const std::string message(config.status().message());
  const std::string prefix = "config.json: ";
  EXPECT_EQ(message.rfind(prefix, 0), 0u) << message;
  return message.substr(prefix.size());
}

TEST(HfConfigTest, ReadsTheSizesOfAFile) {
  const std::string path = TRAIND_TEST_DATA "/golden/weights/tinyllama/config.json";
  const auto config = ParseHfConfig(*ReadFile(path), path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->model_type, "llama");
  EXPECT_EQ(config->vocab_size, 266);
  EXPECT_EQ(config->hidden_size, 16);
  EXPECT_EQ(config->intermediate_size, 32);
  EXPECT_EQ(config->num_hidden_layers, 2);
  EXPECT_EQ(config->num_attention_heads, 4);
  EXPECT_EQ(config->num_key_value_heads, 2);
  EXPECT_EQ(config->head_dim, 4);
  EXPECT_EQ(config->max_position_embeddings, 4096);
  EXPECT_EQ(config->rms_norm_eps, 1e-5);
  EXPECT_EQ(config->bos_token_id, 1);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config->pad_token_id, 0);
  EXPECT_EQ(config->dtype, "float32");
  EXPECT_EQ(CountParameters(*config), 13'200);
}

TEST(HfConfigTest, BothLayoutsAgree) {
  const std::string root = TRAIND_TEST_DATA "/golden/weights/";
  const auto old_layout = ParseHfConfig(*ReadFile(root + "tinyllama/config.json"), "4");
  const auto new_layout = ParseHfConfig(*ReadFile(root + "tinyllama-sharded/config.json"), "5");
  ASSERT_TRUE(old_layout.ok()) << old_layout.status();
  ASSERT_TRUE(new_layout.ok()) << new_layout.status();
  EXPECT_EQ(new_layout->rope_theta, old_layout->rope_theta);
  EXPECT_EQ(new_layout->dtype, "bfloat16");
}

TEST(HfConfigTest, DefaultsAreThoseOfTransformers) {
  const auto llama = Parse(TinyLlama());
  ASSERT_TRUE(llama.ok()) << llama.status();
  EXPECT_EQ(llama->num_key_value_heads, 4);
  EXPECT_EQ(llama->head_dim, 64);
  EXPECT_EQ(llama->rms_norm_eps, 1e-6);
  EXPECT_EQ(llama->rope_theta, 10000);
  EXPECT_FALSE(llama->tie_word_embeddings);
  EXPECT_EQ(llama->bos_token_id, 1);
  EXPECT_THAT(llama->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(llama->pad_token_id, -1);
  json mistral = TinyMistral();
  mistral.erase("num_key_value_heads");
  mistral["num_attention_heads"] = 16;
  const auto config = Parse(mistral);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_key_value_heads, 8);
}

TEST(HfConfigTest, RopeThetaIsReadInEveryLayout) {
  EXPECT_EQ(Parse(TinyLlama())->rope_theta, 10000);
  EXPECT_EQ(Parse(TinyLlama(), {{"rope_theta", 1e6}, {"rope_scaling", nullptr}})->rope_theta, 1e6);
  const json nested = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  EXPECT_EQ(Parse(TinyLlama(), {{"rope_parameters", nested}})->rope_theta, 1e6);
  EXPECT_EQ(ParseError(TinyLlama(), {{"rope_theta", 5e5}, {"rope_parameters", nested}}),
            "rope_theta is 500000, but rope_parameters.rope_theta is 1e+06");
}

TEST(HfConfigTest, ScaledRopeIsRefusedByName) {
  const auto text = [](const char* key, const char* type) {
    return std::string(key) + " has rope_type \"" + type +
           "\", which is not supported; supported is \"default\"";
  };
  EXPECT_EQ(ParseError(TinyLlama(), {{"rope_scaling", {{"type", "linear"}, {"factor", 4.0}}}}),
            text("rope_scaling", "linear"));
  EXPECT_EQ(ParseError(TinyLlama(), {{"rope_scaling", {{"rope_type", "spiral"}}}}),
            text("rope_scaling", "spiral"));
  EXPECT_EQ(ParseError(TinyLlama(), {{"rope_parameters", {{"rope_type", "llama3"}}}}),
            text("rope_parameters", "llama3"));
  EXPECT_EQ(ParseError(TinyLlama(), {{"rope_scaling", {{"factor", 4.0}}}}),
            "rope_scaling has a factor but no rope_type");
  EXPECT_EQ(ParseError(TinyLlama(), {{"rope_parameters", {{"full_attention", json::object()}}}}),
            "rope_parameters has settings per layer type (\"full_attention\"), which is not "
            "supported");
  EXPECT_EQ(ParseError(TinyLlama(), {{"partial_rotary_factor", 0.5}}),
            "partial_rotary_factor 0.5 is not supported");
}

TEST(HfConfigTest, UnknownArchitectureNamesTheSupportedOnes) {
  EXPECT_EQ(
      ParseError(TinyLlama(), {{"architectures", {"Qwen2ForCausalLM"}}, {"model_type", "qwen2"}}),
      "architecture Qwen2ForCausalLM with model_type \"qwen2\" is not supported; supported "
      "are LlamaForCausalLM with model_type \"llama\" and MistralForCausalLM with "
      "\"mistral\"");
  EXPECT_THAT(ParseError(TinyLlama(), {{"architectures", {"LlamaForSequenceClassification"}}}),
              HasSubstr("architecture LlamaForSequenceClassification with model_type \"llama\""));
  EXPECT_THAT(ParseError(json::object(), json::object()),
              HasSubstr("architecture (none given) with model_type \"\""));
}

TEST(HfConfigTest, SlidingWindowsAreRefused) {
  EXPECT_TRUE(Parse(TinyMistral()).ok());
  EXPECT_TRUE(Parse(TinyMistral(), {{"sliding_window", 131072}}).ok());
  const std::string text =
      "sliding_window 4096 below max_position_embeddings 131072 is not supported";
  EXPECT_EQ(ParseError(TinyMistral(), {{"sliding_window", 4096}}), text);
  json silent = TinyMistral();
  silent.erase("sliding_window");
  EXPECT_EQ(ParseError(silent, json::object()), text);
}

TEST(HfConfigTest, OtherArithmeticIsRefused) {
  EXPECT_EQ(ParseError(TinyLlama(), {{"attention_bias", true}}),
            "attention_bias true is not supported");
  EXPECT_EQ(ParseError(TinyLlama(), {{"mlp_bias", true}}), "mlp_bias true is not supported");
  EXPECT_EQ(ParseError(TinyLlama(), {{"hidden_act", "gelu"}}),
            "hidden_act \"gelu\" is not supported; supported is \"silu\"");
  EXPECT_EQ(ParseError(TinyLlama(), {{"attention_dropout", 0.1}}),
            "attention_dropout 0.1 is not supported");
  EXPECT_THAT(ParseError(TinyLlama(), {{"quantization_config", {{"bits", 4}}}}),
              HasSubstr("quantization_config: the weights are quantised"));
}

TEST(HfConfigTest, AllProblemsAreNamedAtOnce) {
  json config = TinyLlama();
  config.erase("hidden_size");
  config.erase("vocab_size");
  EXPECT_THAT(ParseError(config, {{"mlp_bias", true}}),
              HasSubstr("vocab_size is missing; hidden_size is missing"));
  EXPECT_THAT(ParseError(config, {{"mlp_bias", true}}), HasSubstr("; mlp_bias true"));
}

TEST(HfConfigTest, ImpossibleSizesAreRefused) {
  EXPECT_EQ(ParseError(TinyLlama(), {{"num_attention_heads", 3}, {"num_key_value_heads", 3}}),
            "num_attention_heads 3 does not divide hidden_size 256, and head_dim is not given; "
            "head_dim 85 is odd");
  EXPECT_EQ(ParseError(TinyLlama(), {{"num_key_value_heads", 3}}),
            "num_key_value_heads 3 does not divide num_attention_heads 4");
  EXPECT_THAT(ParseError(TinyLlama(), {{"num_attention_heads", 0}}),
              HasSubstr("num_attention_heads is 0, not in [1, 16777216]"));
  EXPECT_THAT(ParseError(TinyLlama(), {{"hidden_size", "16"}}),
              HasSubstr("hidden_size is \"16\", not an integer"));
  EXPECT_EQ(ParseError(TinyLlama(), {{"rms_norm_eps", -1}}), "rms_norm_eps is -1, not in (0, 1)");
  EXPECT_EQ(ParseError(TinyLlama(), {{"rope_theta", -5}}), "rope_theta is -5, not at least 1");
  EXPECT_THAT(ParseError(TinyLlama(), {{"num_hidden_layers", 1'000'000'000}}),
              HasSubstr("num_hidden_layers is 1000000000, not in [1, 1000]"));
}

TEST(HfConfigTest, TokenIdsMayBeListsNullOrNegative) {
  EXPECT_THAT(Parse(TinyLlama(), {{"eos_token_id", {5, 7}}})->eos_token_ids, ElementsAre(5, 7));
  EXPECT_THAT(Parse(TinyLlama(), {{"eos_token_id", nullptr}})->eos_token_ids, IsEmpty());
  EXPECT_EQ(Parse(TinyLlama(), {{"pad_token_id", -1}})->pad_token_id, -1);
  EXPECT_EQ(ParseError(TinyLlama(), {{"eos_token_id", 266}}),
            "eos_token_id is 266, not an id below vocab_size 266");
}

TEST(HfConfigTest, RefusesTextThatIsNoConfig) {
  EXPECT_THAT(ParseHfConfig("{\n\"a\": }", "c").status().message(),
              HasSubstr("c: not valid JSON: parse error at line 2, column"));
  EXPECT_EQ(ParseHfConfig("[1]", "c").status().message(), "c: not a JSON object");
  EXPECT_EQ(ParseHfConfig(R"({"hidden_size": 1, "hidden_size": 2})", "c").status().message(),
            "c: the key \"hidden_size\" occurs twice");
  const std::string deep(100'000, '[');
  EXPECT_FALSE(ParseHfConfig(deep, "c").ok());
  EXPECT_FALSE(ParseHfConfig("{\"model_type\":\"llama\",\"hidden_size\":" + deep +
                                 std::string(deep.size(), ']') + "}",
                             "c")
                   .ok());
}

}  // namespace
}  // namespace traind
