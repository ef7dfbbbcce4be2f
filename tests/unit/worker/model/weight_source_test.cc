#include "worker/model/weight_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/modelspec/model_tensors.h"
#include "common/modelspec/safetensors_file.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/gguf_bytes.h"
#include "worker/model/dequantize.h"

namespace traind {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kGolden = TRAIND_TEST_DATA "/golden/weights/";

std::vector<float> Read(const WeightSource& weights, const std::string& name) {
  for (const TensorSpec& spec : ModelTensors(weights.config())) {
    if (spec.name != name) continue;
    std::vector<float> values(static_cast<size_t>(NumElements(spec.shape)));
    const absl::Status status = weights.ReadFloat32(name, spec.shape, absl::MakeSpan(values));
    EXPECT_TRUE(status.ok()) << status;
    return values;
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

std::unique_ptr<WeightSource> Open(const std::string& path) {
  auto weights = OpenWeights(path);
  EXPECT_TRUE(weights.ok()) << weights.status();
  return weights.ok() ? *std::move(weights) : nullptr;
}

// A copy of a golden folder that a test can break.
class WeightSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = absl::StrCat(testing::TempDir(), "/weights_", info->name());
    ASSERT_TRUE(RemoveAll(folder_).ok());
    ASSERT_TRUE(CreateDirectories(folder_).ok());
  }
  void TearDown() override { EXPECT_TRUE(RemoveAll(folder_).ok()); }

  void CopyFile(const std::string& golden, const std::string& name) {
    Write(name, *ReadFile(absl::StrCat(kGolden, golden, "/", name)));
  }
  void Write(const std::string& name, const std::string& contents) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder_, "/", name), contents).ok());
  }
  // The golden tensors with changes, as model.safetensors.
  void WriteTensors(const std::function<void(std::vector<SafetensorsEntry>&)>& change) {
    const auto file = SafetensorsFile::Open(kGolden + "tinyllama/model.safetensors");
    ASSERT_TRUE(file.ok());
    std::vector<SafetensorsEntry> entries;
    for (const auto& [name, tensor] : file->header().tensors()) {
      const float* values = reinterpret_cast<const float*>(tensor.data.data());
      entries.push_back({name, tensor.shape, absl::MakeSpan(values, tensor.data.size() / 4)});
    }
    change(entries);
    ASSERT_TRUE(WriteSafetensors(folder_ + "/model.safetensors", entries).ok());
  }
  // The message of a failed OpenWeights(folder_), without "folder: ".
  std::string OpenError(Reason reason = Reason::kModelInvalid) {
    const auto weights = OpenWeights(folder_);
    EXPECT_FALSE(weights.ok());
    EXPECT_EQ(ReasonOf(weights.status()), reason);
    const std::string message(weights.status().message());
    EXPECT_THAT(message, StartsWith(folder_));
    return message.substr(folder_.size());
  }

  std::string folder_;
};

TEST_F(WeightSourceTest, ReadsTheTensorsOfAFolder) {
  const auto weights = Open(kGolden + "tinyllama");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->names().size(), 21u);
  // Names sorted: lm_head.weight is tensor 0, see make_weights.py.
  EXPECT_EQ(weights->names()[0], "lm_head.weight");
  const std::vector<float> head = Read(*weights, "lm_head.weight");
  for (size_t i = 0; i < head.size(); ++i) {
    ASSERT_NEAR(head[i], 0.3 * std::sin(0.7 * static_cast<double>(i) + 0.5), 1e-7) << i;
  }
}

TEST_F(WeightSourceTest, ShardsInBfloat16EqualTheFolder) {
  const auto exact = Open(kGolden + "tinyllama");
  const auto rounded = Open(kGolden + "tinyllama-sharded");
  ASSERT_NE(exact, nullptr);
  ASSERT_NE(rounded, nullptr);
  EXPECT_EQ(rounded->names(), exact->names());
  for (const std::string& name : exact->names()) {
    const std::vector<float> a = Read(*exact, name);
    const std::vector<float> b = Read(*rounded, name);
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 0x1p-8 * std::abs(a[i])) << name;
  }
}

// The GGUF stores q and k permuted, as llama.cpp's converter does; read back they are equal.
TEST_F(WeightSourceTest, GgufEqualsTheFolder) {
  const auto folder = Open(kGolden + "tinyllama");
  const auto gguf = Open(kGolden + "tinyllama-f32.gguf");
  ASSERT_NE(folder, nullptr);
  ASSERT_NE(gguf, nullptr);
  EXPECT_EQ(gguf->names(), folder->names());
  EXPECT_EQ(gguf->config().head_dim, folder->config().head_dim);
  for (const std::string& name : folder->names()) {
    EXPECT_EQ(Read(*gguf, name), Read(*folder, name)) << name;
  }
}

TEST_F(WeightSourceTest, WrongReadsAreRefused) {
  const auto weights = Open(kGolden + "tinyllama");
  ASSERT_NE(weights, nullptr);
  std::vector<float> values(16);
  const std::vector<int64_t> shape = {16};
  EXPECT_THAT(weights->ReadFloat32("nothing", shape, absl::MakeSpan(values)).message(),
              HasSubstr("there is no tensor \"nothing\""));
  EXPECT_THAT(weights->ReadFloat32("lm_head.weight", shape, absl::MakeSpan(values)).message(),
              HasSubstr("tensor \"lm_head.weight\" (model.safetensors) has shape [266, 16], but"));
  EXPECT_THAT(
      weights->ReadFloat32("model.norm.weight", shape, absl::MakeSpan(values).first(8)).message(),
      HasSubstr("does not fit the buffer"));
}

TEST_F(WeightSourceTest, MissingModelIsNotFound) {
  const auto weights = OpenWeights("/nonexistent/model");
  EXPECT_EQ(ReasonOf(weights.status()), Reason::kModelNotFound);
  EXPECT_EQ(weights.status().message(),
            "/nonexistent/model: No such file or directory; the base model must be a Hugging Face "
            "folder or a GGUF file on this host");
}

TEST_F(WeightSourceTest, FoldersThatAreNoModelSayWhy) {
  EXPECT_EQ(OpenError(), ": config.json is missing");
  Write("tiny.gguf", "GGUF");
  EXPECT_EQ(OpenError(), absl::StrCat(": config.json is missing; to use a GGUF file, name the file "
                                      "itself: ",
                                      folder_, "/tiny.gguf"));
  Write("adapter_config.json", "{}");
  EXPECT_EQ(OpenError(), ": this is an adapter, not a base model (config.json is missing)");
}

TEST_F(WeightSourceTest, ConfigWithoutWeightsIsRefused) {
  CopyFile("tinyllama", "config.json");
  EXPECT_EQ(OpenError(),
            ": there is a config.json but no weights (model.safetensors or "
            "model.safetensors.index.json)");
}

TEST_F(WeightSourceTest, PickledWeightsAreRefusedWithAWayOut) {
  CopyFile("tinyllama", "config.json");
  Write("pytorch_model-00001-of-00002.bin", "x");
  const std::string error = OpenError();
  EXPECT_THAT(error, StartsWith(": the weights are in pytorch_model-00001-of-00002.bin, a pickle, "
                                "which can run any code when it is read and is refused"));
  EXPECT_THAT(error, HasSubstr(absl::StrCat("from_pretrained(\"", folder_, "\")")));
}

TEST_F(WeightSourceTest, ASafetensorsFileAloneNamesItsFolder) {
  EXPECT_THAT(OpenWeights(kGolden + "tinyllama/model.safetensors").status().message(),
              HasSubstr("name the folder that holds it and its config.json"));
}

TEST_F(WeightSourceTest, UnknownArchitectureIsRefusedBeforeWeightsAreLookedAt) {
  Write("config.json", R"({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"})");
  EXPECT_THAT(OpenError(), StartsWith("/config.json: architecture GPT2LMHeadModel with model_type"
                                      " \"gpt2\" is not supported; supported are"));
}

TEST_F(WeightSourceTest, TruncatedWeightsAreRefused) {
  CopyFile("tinyllama", "config.json");
  const std::string bytes = *ReadFile(kGolden + "tinyllama/model.safetensors");
  Write("model.safetensors", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(OpenError(), testing::MatchesRegex(
                               "/model.safetensors: damaged safetensors file: tensor \".*\" ends "
                               "at byte .* of the data, which has .*; fetch the file again"));
}

TEST_F(WeightSourceTest, MissingMisshapenAndUnknownTensorsAreNamed) {
  CopyFile("tinyllama", "config.json");
  WriteTensors([](auto& entries) { entries.erase(entries.begin(), entries.begin() + 2); });
  EXPECT_EQ(OpenError(), ": 2 tensors are missing: model.embed_tokens.weight, lm_head.weight");
  WriteTensors([](auto& entries) { entries.clear(); });
  EXPECT_THAT(OpenError(), HasSubstr(": 21 tensors are missing: model.embed_tokens.weight, "));
  EXPECT_THAT(OpenError(), HasSubstr(" and 16 more"));
  WriteTensors([](auto& entries) { entries[0].shape = {16, 266}; });
  EXPECT_EQ(OpenError(),
            ": tensor \"lm_head.weight\" (model.safetensors) has shape [16, 266], but the config "
            "says [266, 16]");
  WriteTensors([](auto& entries) {
    entries.push_back(entries[0]);
    entries.back().name = "model.layers.0.self_attn.q_norm.weight";
  });
  EXPECT_EQ(OpenError(),
            ": 1 tensors have no place in a llama model: model.layers.0.self_attn.q_norm.weight");
}

TEST_F(WeightSourceTest, TensorsThatTheModelComputesMayBeThere) {
  CopyFile("tinyllama", "config.json");
  const std::vector<float> frequencies(2, 1);
  WriteTensors([&](auto& entries) {
    entries.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", {2}, frequencies});
  });
  EXPECT_NE(Open(folder_), nullptr);
}

TEST_F(WeightSourceTest, TiedEmbeddingsNeedNoHead) {
  auto config = nlohmann::json::parse(*ReadFile(kGolden + "tinyllama/config.json"));
  config["tie_word_embeddings"] = true;
  Write("config.json", config.dump());
  WriteTensors([](auto& entries) { entries.erase(entries.begin()); });
  const auto weights = Open(folder_);
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->names().size(), 20u);
}

TEST_F(WeightSourceTest, BadIndexesAreRefused) {
  CopyFile("tinyllama-sharded", "config.json");
  CopyFile("tinyllama-sharded", "model.safetensors.index.json");
  CopyFile("tinyllama-sharded", "model-00001-of-00002.safetensors");
  EXPECT_EQ(OpenError(),
            ": model.safetensors.index.json names model-00002-of-00002.safetensors, which is "
            "missing");
  Write("model.safetensors.index.json",
        R"({"weight_map": {"lm_head.weight": "../model.safetensors"}})");
  EXPECT_EQ(OpenError(),
            "/model.safetensors.index.json: weight_map names no file of the folder for "
            "\"lm_head.weight\": \"../model.safetensors\"");
  Write("model.safetensors.index.json",
        R"({"weight_map": {"x": "model-00001-of-00002.safetensors"}})");
  EXPECT_EQ(
      OpenError(),
      ": model.safetensors.index.json places \"x\" in model-00001-of-00002.safetensors, which "
      "does not have it");
  Write("model.safetensors.index.json", "{}");
  EXPECT_EQ(OpenError(), "/model.safetensors.index.json: weight_map is missing or not an object");
}

TEST_F(WeightSourceTest, UnreadableTypesNameTheTensorAndWhatIsSupported) {
  std::string bytes = *ReadFile(kGolden + "tinyllama-f32.gguf");
  // The type follows the name, the number of dimensions and the two dimensions.
  const size_t type_at = bytes.find("token_embd.weight") + 17 + 4 + 16;
  bytes[type_at] = 26;
  Write("i32.gguf", bytes);
  EXPECT_THAT(OpenWeights(folder_ + "/i32.gguf").status().message(),
              HasSubstr("tensor \"model.embed_tokens.weight\" (token_embd.weight) has type I32, "
                        "which is not supported; supported are F32, F16, BF16 and, in GGUF, Q8_0, "
                        "Q4_0 and Q4_1"));
}

TEST_F(WeightSourceTest, GarbageIsNoGguf) {
  Write("a.gguf", "garbage");
  EXPECT_THAT(OpenWeights(folder_ + "/a.gguf").status().message(),
              HasSubstr("/a.gguf: not a GGUF file"));
}

// What the gguf package makes of the same bytes.
TEST(DequantizeTest, EqualsTheGgufPackage) {
  const auto blocks = nlohmann::json::parse(*ReadFile(kGolden + "blocks.json"));
  const std::vector<std::pair<std::string, NumberFormat>> formats = {
      {"F16", NumberFormat::kFloat16},
      {"BF16", NumberFormat::kBfloat16},
      {"Q8_0", NumberFormat::kQ8_0},
      {"Q4_0", NumberFormat::kQ4_0},
      {"Q4_1", NumberFormat::kQ4_1}};
  for (const auto& [name, format] : formats) {
    const std::string bytes = absl::HexStringToBytes(blocks[name]["bytes_hex"].get<std::string>());
    const auto expected = blocks[name]["values"].get<std::vector<float>>();
    std::vector<float> values(expected.size());
    ConvertToFloat32(format, bytes, absl::MakeSpan(values));
    EXPECT_EQ(values, expected) << name;
  }
}

TEST(DequantizeTest, HalfPrecisionAtItsLimits) {
  const std::vector<uint16_t> bits = {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x7bff, 0xfc00};
  const std::vector<float> expected = {0.0f,     -0.0f,    0x1p-24f, 1023 * 0x1p-24f,
                                       0x1p-14f, 65504.0f, -INFINITY};
  std::vector<float> values(bits.size());
  ConvertToFloat32(NumberFormat::kFloat16,
                   {reinterpret_cast<const char*>(bits.data()), bits.size() * 2},
                   absl::MakeSpan(values));
  EXPECT_EQ(values, expected);
  EXPECT_TRUE(std::signbit(values[1]));
  const uint16_t nan = 0x7e00;
  ConvertToFloat32(NumberFormat::kFloat16, {reinterpret_cast<const char*>(&nan), 2},
                   absl::MakeSpan(values).first(1));
  EXPECT_TRUE(std::isnan(values[0]));
}

}  // namespace
}  // namespace traind
