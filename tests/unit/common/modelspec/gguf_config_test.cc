#include "common/modelspec/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "common/status/errors.h"
#include "tests/support/gguf_bytes.h"

namespace traind {
namespace {

using ::testing::ElementsAre;

// The metadata of a tiny Llama; a test changes it before it parses.
struct TinyLlama {
  std::map<std::string, uint32_t> integers = {
      {"llama.block_count", 2},           {"llama.context_length", 4096},
      {"llama.embedding_length", 16},     {"llama.feed_forward_length", 32},
      {"llama.attention.head_count", 4},  {"llama.attention.head_count_kv", 2},
      {"llama.rope.dimension_count", 4},  {"tokenizer.ggml.bos_token_id", 1},
      {"tokenizer.ggml.eos_token_id", 2}, {"tokenizer.ggml.padding_token_id", 0}};
  std::map<std::string, float> floats = {{"llama.attention.layer_norm_rms_epsilon", 1e-5f},
                                         {"llama.rope.freq_base", 500000}};
  std::map<std::string, std::string> texts = {{"general.architecture", "llama"}};
  std::vector<std::string> tensors = {"token_embd.weight", "output.weight"};

  absl::StatusOr<ModelConfig> Parse() const {
    GgufBytes bytes(tensors.size(), integers.size() + floats.size() + texts.size());
    for (const auto& [key, value] : integers) bytes.AddUint32(key, value);
    for (const auto& [key, value] : floats) bytes.AddFloat(key, value);
    for (const auto& [key, value] : texts) bytes.AddText(key, value);
    for (size_t i = 0; i < tensors.size(); ++i) bytes.AddTensor(tensors[i], 16, 266, 1, i * 8512);
    const std::string file = bytes.WithData(tensors.size() * 8512);
    const auto header = GgufHeader::Parse(file, "a.gguf");
    if (!header.ok()) return header.status();
    return ParseGgufConfig(*header);
  }
};

std::string ErrorAfter(const std::function<void(TinyLlama&)>& change) {
  TinyLlama llama;
  change(llama);
  const auto config = llama.Parse();
  EXPECT_FALSE(config.ok());
  EXPECT_EQ(ReasonOf(config.status()), Reason::kModelInvalid);
  return std::string(config.status().message());
}

TEST(GgufConfigTest, ReadsALlama) {
  const auto config = TinyLlama().Parse();
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
  EXPECT_NEAR(config->rms_norm_eps, 1e-5, 1e-12);
  EXPECT_EQ(config->rope_theta, 500000);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_EQ(config->bos_token_id, 1);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config->pad_token_id, 0);
}

TEST(GgufConfigTest, WithoutOutputTheEmbeddingIsTied) {
  TinyLlama llama;
  llama.tensors.pop_back();
  const auto config = llama.Parse();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->tie_word_embeddings);
}

TEST(GgufConfigTest, OptionalKeysHaveLlamasDefaults) {
  TinyLlama llama;
  for (const char* key : {"llama.attention.head_count_kv", "llama.rope.dimension_count",
                          "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"}) {
    llama.integers.erase(key);
  }
  llama.floats.erase("llama.rope.freq_base");
  const auto config = llama.Parse();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_key_value_heads, 4);
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_EQ(config->bos_token_id, -1);
  EXPECT_TRUE(config->eos_token_ids.empty());
}

TEST(GgufConfigTest, RefusesOtherArchitectures) {
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.texts["general.architecture"] = "qwen2"; }),
            "a.gguf: architecture \"qwen2\" is not supported; supported is \"llama\"");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.texts.clear(); }),
            "a.gguf: GGUF metadata \"general.architecture\" is missing");
}

TEST(GgufConfigTest, RefusesOtherArithmeticByName) {
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.texts["llama.rope.scaling.type"] = "yarn"; }),
            "a.gguf: llama.rope.scaling.type \"yarn\" is not supported; supported is \"none\"");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.tensors.push_back("rope_freqs.weight"); }),
            "a.gguf: rope_freqs.weight (RoPE of type \"llama3\") is not supported");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.floats["llama.rope.scale_linear"] = 2; }),
            "a.gguf: llama.rope.scale_linear 2 is not supported");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.integers["llama.rope.dimension_count"] = 2; }),
            "a.gguf: llama.rope.dimension_count 2 for heads of 4 is not supported");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.integers["llama.expert_count"] = 8; }),
            "a.gguf: llama.expert_count: experts are not supported");
  EXPECT_EQ(
      ErrorAfter([](TinyLlama& m) { m.integers["llama.attention.sliding_window"] = 32; }),
      "a.gguf: llama.attention.sliding_window 32 below llama.context_length is not supported");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.integers["llama.attention.value_length"] = 8; }),
            "a.gguf: llama.attention.value_length other than key_length is not supported");
}

TEST(GgufConfigTest, RefusesImpossibleSizes) {
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.integers.erase("llama.context_length"); }),
            "a.gguf: GGUF metadata \"llama.context_length\" is missing");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.integers["llama.attention.head_count_kv"] = 3; }),
            "a.gguf: num_key_value_heads 3 does not divide num_attention_heads 4");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.tensors = {"output.weight"}; }),
            "a.gguf: tensor token_embd.weight is missing or not a matrix");
  EXPECT_EQ(ErrorAfter([](TinyLlama& m) { m.integers["tokenizer.ggml.eos_token_id"] = 266; }),
            "a.gguf: tokenizer.ggml.eos_token_id is 266, not an id below 266");
}

}  // namespace
}  // namespace traind
