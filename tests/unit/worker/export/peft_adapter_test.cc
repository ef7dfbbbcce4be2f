#include "worker/export/peft_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/modelspec/safetensors_file.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_adapter.h"
#include "worker/export/lora_tensors.h"

namespace traind {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PeftAdapterTest : public testing::Test {
 protected:
  // The message of a failed check of what was written.
  std::string CheckError() {
    const absl::Status status = CheckPeftAdapter(dir_.path(), base_.config);
    EXPECT_EQ(ReasonOf(status), Reason::kAdapterInvalid);
    return std::string(status.message());
  }
  void Write(absl::Span<const float> parameters) {
    const absl::Status status = WritePeftFiles(dir_.path(), layout_, parameters, base_);
    ASSERT_TRUE(status.ok()) << status;
  }

  TempDir dir_;
  AdapterLayout layout_ = TinyAdapterLayout();
  PeftBase base_{"/models/tinyllama", TinyLlamaConfig()};
  std::vector<float> parameters_ = Waves(layout_.size, 1);
};

// Names and shapes as PEFT gives them for r = 2 on q_proj and v_proj of this model.
TEST_F(PeftAdapterTest, TensorsHavePeftsNamesAndShapes) {
  Write(parameters_);
  const auto file = SafetensorsFile::Open(dir_.File(kAdapterModelFile));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->header().metadata().at("format"), "pt");
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const auto& [name, tensor] : file->header().tensors()) shapes[name] = tensor.shape;
  std::map<std::string, std::vector<int64_t>> expected;
  for (const std::string layer : {"0", "1"}) {
    const std::string attention = "base_model.model.model.layers." + layer + ".self_attn.";
    expected[attention + "q_proj.lora_A.weight"] = {2, 16};
    expected[attention + "q_proj.lora_B.weight"] = {16, 2};
    expected[attention + "v_proj.lora_A.weight"] = {2, 16};
    expected[attention + "v_proj.lora_B.weight"] = {8, 2};
  }
  EXPECT_EQ(shapes, expected);
}

TEST_F(PeftAdapterTest, ConfigHasExactlyPeftsKeys) {
  layout_.options.lora_dropout = 0.05;
  const json config = json::parse(PeftConfigJson(layout_, base_));
  EXPECT_EQ(config, json::parse(R"({
      "alpha_pattern": {}, "auto_mapping": null, "base_model_name_or_path": "/models/tinyllama",
      "bias": "none", "fan_in_fan_out": false, "inference_mode": true, "init_lora_weights": true,
      "layers_pattern": null, "layers_to_transform": null, "lora_alpha": 4, "lora_dropout": 0.05,
      "modules_to_save": null, "peft_type": "LORA", "r": 2, "rank_pattern": {}, "revision": null,
      "target_modules": ["q_proj", "v_proj"], "task_type": "CAUSAL_LM", "use_dora": false,
      "use_rslora": false})"));
  EXPECT_THAT(PeftConfigJson(layout_, base_), HasSubstr("{\n  \"alpha_pattern\": {},\n"));
  layout_.options.lora_alpha = 4.5;
  layout_.options.use_rslora = true;
  const json other = json::parse(PeftConfigJson(layout_, base_));
  EXPECT_EQ(other["lora_alpha"], 4.5);
  EXPECT_EQ(other["use_rslora"], true);
}

// tests/golden/parity/check_adapter.py loads these files in PEFT. To make them anew, set
// TRAIND_WRITE_GOLDEN and run the script.
TEST_F(PeftAdapterTest, WritesTheFilesThatPeftWasSeenToLoad) {
  const std::string golden = TRAIND_TEST_DATA "/golden/adapter/";
  base_.name_or_path = "tests/golden/weights/tinyllama";
  Write(parameters_);
  for (const std::string name : {kAdapterModelFile, kAdapterConfigFile}) {
    const std::string written = *ReadFile(dir_.File(name));
    if (std::getenv("TRAIND_WRITE_GOLDEN") != nullptr) {
      ASSERT_TRUE(WriteFileAtomically(golden + name, written).ok());
    }
    EXPECT_EQ(written, *ReadFile(golden + name)) << name;
  }
}

// A suffix would also hit layer 1, which has no adapter.
TEST_F(PeftAdapterTest, TargetModulesNeverHitMoreThanIsAdapted) {
  std::erase_if(layout_.modules, [](const LoraModule& module) {
    return module.name == "model.layers.1.self_attn.v_proj";
  });
  EXPECT_THAT(json::parse(PeftConfigJson(layout_, base_))["target_modules"],
              ElementsAre("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj",
                          "model.layers.1.self_attn.q_proj"));
}

TEST_F(PeftAdapterTest, APathThatIsNotUtf8StillGivesJson) {
  base_.name_or_path = "/models/\xff";
  EXPECT_TRUE(json::accept(PeftConfigJson(layout_, base_)));
}

TEST_F(PeftAdapterTest, RoundTripIsBitEqual) {
  parameters_[0] = std::numeric_limits<float>::denorm_min();
  parameters_[1] = -0.0f;
  Write(parameters_);
  std::vector<float> back(parameters_.size());
  const absl::Status status = ReadPeftAdapter(dir_.path(), layout_, absl::MakeSpan(back));
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(std::memcmp(back.data(), parameters_.data(), back.size() * sizeof(float)), 0);
}

// The names lack one "model." level: nothing of it would match.
TEST_F(PeftAdapterTest, ReadListsAllNamesThatDoNotMatch) {
  const std::string path = dir_.File(kAdapterModelFile);
  ASSERT_TRUE(WriteSafetensors(path, LoraEntries(layout_, "base_model.", parameters_)).ok());
  std::vector<float> back(parameters_.size());
  const absl::Status status = ReadPeftAdapter(dir_.path(), layout_, absl::MakeSpan(back));
  EXPECT_EQ(ReasonOf(status), Reason::kAdapterInvalid);
  EXPECT_THAT(status.message(), HasSubstr("8 tensors belong to no module of the adapter ("
                                          "base_model.model.layers.0.self_attn.q_proj.lora_A"));
  EXPECT_THAT(status.message(), HasSubstr("and 8 are missing (base_model.model.model.layers.0."));
  EXPECT_THAT(CheckError(), HasSubstr("base_model.model.layers.1.self_attn.v_proj.lora_B.weight "
                                      "belongs to no module of the base model"));
}

TEST_F(PeftAdapterTest, ReadRefusesOtherShapes) {
  Write(parameters_);
  AdapterLayout other = layout_;
  other.options.r = 1;
  std::vector<float> back(parameters_.size());
  EXPECT_THAT(ReadPeftAdapter(dir_.path(), other, absl::MakeSpan(back)).message(),
              HasSubstr("lora_A.weight\" is F32 [2, 16], not F32 [1, 16]"));
}

TEST_F(PeftAdapterTest, CheckAcceptsATrainedAdapter) {
  Write(parameters_);
  const absl::Status status = CheckPeftAdapter(dir_.path(), base_.config);
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(PeftAdapterTest, CheckNamesNanInfinityAndZero) {
  const LoraModule& first = layout_.modules[0];
  parameters_[static_cast<size_t>(first.a_offset)] = NAN;
  Write(parameters_);
  EXPECT_THAT(CheckError(), testing::EndsWith("adapter_model.safetensors: base_model.model.model."
                                              "layers.0.self_attn.q_proj.lora_A.weight has NaN or "
                                              "infinity"));
  parameters_[static_cast<size_t>(first.a_offset)] = INFINITY;
  Write(parameters_);
  EXPECT_THAT(CheckError(), HasSubstr("has NaN or infinity"));
  parameters_ = Waves(layout_.size, 1);
  std::fill_n(parameters_.begin() + first.b_offset, 2 * first.out_features, 0.0f);
  Write(parameters_);
  EXPECT_THAT(CheckError(), HasSubstr("layers.0.self_attn.q_proj.lora_B.weight is all zero: the "
                                      "module was never trained"));
}

TEST_F(PeftAdapterTest, CheckComparesWithTheBase) {
  Write(parameters_);
  base_.config.num_hidden_layers = 1;
  EXPECT_THAT(CheckError(), HasSubstr("layers.1.self_attn.q_proj.lora_A.weight belongs to no"));
  base_.config = TinyLlamaConfig();
  base_.config.hidden_size = 32;
  EXPECT_THAT(CheckError(), HasSubstr("q_proj.lora_A.weight is F32 [2, 16], which does not fit the "
                                      "base's [16, 32]"));
}

TEST_F(PeftAdapterTest, CheckRefusesEmptyAndHalfAdapters) {
  const std::string path = dir_.File(kAdapterModelFile);
  ASSERT_TRUE(WriteSafetensors(path, {}).ok());
  EXPECT_THAT(CheckError(), HasSubstr("it has no tensors"));
  auto entries = LoraEntries(layout_, "base_model.model.", parameters_);
  entries.pop_back();
  ASSERT_TRUE(WriteSafetensors(path, entries).ok());
  EXPECT_THAT(CheckError(),
              HasSubstr("model.layers.1.self_attn.v_proj has A of rank 2 and B of rank 0"));
  ASSERT_TRUE(RemoveAll(path).ok());
  EXPECT_THAT(CheckError(), HasSubstr("No such file"));
}

TEST_F(PeftAdapterTest, PublishedAdapterHasAManifestAndReplacesTheOldOne) {
  const std::string folder = dir_.File("adapter");
  const AdapterPublication publication{
      20, "run-1", absl::FromUnixSeconds(1), {{"tokenizer.json", "{}"}}};
  for (const double seed : {1.0, 2.0}) {
    const auto manifest =
        PublishPeftAdapter(folder, layout_, Waves(layout_.size, seed), base_, publication);
    ASSERT_TRUE(manifest.ok()) << manifest.status();
  }
  const auto manifest = ReadManifest(folder);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  EXPECT_EQ(manifest->step, 20);
  EXPECT_EQ(manifest->files.size(), 3u);
  EXPECT_TRUE(CheckFiles(folder, *manifest, true).ok());
  std::vector<float> back(parameters_.size());
  ASSERT_TRUE(ReadPeftAdapter(folder, layout_, absl::MakeSpan(back)).ok());
  EXPECT_EQ(back, Waves(layout_.size, 2));
  EXPECT_THAT(*ListDirectory(dir_.path()), ElementsAre("adapter"));
}

TEST_F(PeftAdapterTest, AnInvalidAdapterIsNotPublished) {
  parameters_[0] = NAN;
  const auto manifest =
      PublishPeftAdapter(dir_.File("adapter"), layout_, parameters_, base_, AdapterPublication{});
  EXPECT_EQ(ReasonOf(manifest.status()), Reason::kAdapterInvalid);
  EXPECT_THAT(*ListDirectory(dir_.path()), testing::IsEmpty());
}

#ifdef TRAIND_FAULT_POINTS

// Publishes again over an older adapter with a fault armed, in a process of its own, as the fault
// is read once a process; ends it with 2 if the disk was said to be full.
[[noreturn]] void PublishTwice(const std::string& folder, const std::string& fault) {
  ::setenv("TRAIND_FAULT", (fault + "@2").c_str(), 1);
  const AdapterLayout layout = TinyAdapterLayout();
  const PeftBase base{"/models/tinyllama", TinyLlamaConfig()};
  absl::Status status = RemoveAll(folder);
  for (const double seed : {1.0, 2.0}) {
    if (!status.ok()) std::exit(1);
    status = PublishPeftAdapter(folder, layout, Waves(layout.size, seed), base, {}).status();
  }
  std::exit(ReasonOf(status) == Reason::kDiskFull ? 2 : 3);
}

TEST(PeftAdapterFaultTest, TheOldAdapterStaysUntilTheNewOneIsComplete) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string folder = testing::TempDir() + "traind-fault-adapter";
  for (const std::string point : {"export.after_weights", "export.before_rename"}) {
    EXPECT_EXIT(PublishTwice(folder, point + ":exit"), testing::ExitedWithCode(137), "");
    const AdapterLayout layout = TinyAdapterLayout();
    std::vector<float> back(static_cast<size_t>(layout.size));
    EXPECT_TRUE(ReadPeftAdapter(folder, layout, absl::MakeSpan(back)).ok());
    EXPECT_EQ(back, Waves(layout.size, 1));
    EXPECT_EXIT(PublishTwice(folder, point + ":enospc"), testing::ExitedWithCode(2), "");
    EXPECT_TRUE(ReadPeftAdapter(folder, layout, absl::MakeSpan(back)).ok());
    EXPECT_EQ(back, Waves(layout.size, 1));
  }
  EXPECT_TRUE(RemoveAll(folder).ok());
}

#endif

}  // namespace
}  // namespace traind
