#include "common/modelspec/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/gguf_bytes.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kTinyLlama[] = TRAIND_TEST_DATA "/golden/weights/tinyllama-f32.gguf";

std::string TinyLlamaBytes() { return *ReadFile(kTinyLlama); }

// The message of a failed parse, which must carry MODEL_INVALID and the path.
std::string ParseError(const std::string& bytes) {
  const auto header = GgufHeader::Parse(bytes, "bad.gguf");
  EXPECT_FALSE(header.ok());
  EXPECT_EQ(ReasonOf(header.status()), Reason::kModelInvalid);
  EXPECT_EQ(MetadataOf(header.status(), "path"), "bad.gguf");
  return std::string(header.status().message());
}

TEST(GgufFileTest, ReadsMetadataOfEveryType) {
  const auto file = GgufFile::Open(kTinyLlama);
  ASSERT_TRUE(file.ok()) << file.status();
  const GgufHeader& header = file->header();
  EXPECT_EQ(*header.GetString("general.architecture"), "llama");
  EXPECT_EQ(*header.GetInt("llama.block_count"), 2);
  EXPECT_FLOAT_EQ(static_cast<float>(*header.GetDouble("llama.attention.layer_norm_rms_epsilon")),
                  1e-5f);
  EXPECT_EQ(*header.GetBool("tokenizer.ggml.add_bos_token"), false);
  EXPECT_EQ(*header.GetInt("test.uint64"), int64_t{1} << 40);
  EXPECT_EQ(*header.GetDouble("test.float64"), 0.1);
  EXPECT_THAT(*header.GetDoubles("test.floats"), ElementsAre(0.5, -1.5));
  EXPECT_THAT(*header.GetInts("test.integers"), ElementsAre(-1, 2, 300));
  EXPECT_THAT(*header.GetStrings("test.strings"), ElementsAre("a", "", "\u00e9"));
}

TEST(GgufFileTest, TensorShapesAreRowMajorAndDataFits) {
  const auto file = GgufFile::Open(kTinyLlama);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto& tensors = file->header().tensors();
  EXPECT_EQ(tensors.size(), 21u);
  bool found = false;
  for (const GgufTensor& tensor : tensors) {
    if (tensor.name != "token_embd.weight") continue;
    found = true;
    EXPECT_THAT(tensor.shape, ElementsAre(266, 16));
    EXPECT_EQ(tensor.data.size(), 266u * 16 * 4);
  }
  EXPECT_TRUE(found);
}

TEST(GgufFileTest, MissingAndMistypedMetadataIsNamed) {
  const auto file = GgufFile::Open(kTinyLlama);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(file->header().GetInt("llama.nothing").status().message(),
              HasSubstr("\"llama.nothing\" is missing"));
  EXPECT_THAT(file->header().GetInt("general.architecture").status().message(),
              HasSubstr("\"general.architecture\" is not an integer"));
}

TEST(GgufFileTest, MissingFileIsNotFound) {
  const auto file = GgufFile::Open("/nonexistent/a.gguf");
  EXPECT_EQ(ReasonOf(file.status()), Reason::kModelNotFound);
}

TEST(GgufFileTest, RefusesOtherFilesAndVersions) {
  EXPECT_EQ(ParseError(""), "bad.gguf: not a GGUF file (it does not begin with \"GGUF\")");
  EXPECT_EQ(ParseError("{\"a\": 1}"), ParseError(""));
  std::string bytes = TinyLlamaBytes();
  bytes[4] = 1;
  EXPECT_EQ(ParseError(bytes), "bad.gguf: GGUF version 1 is not supported (2 and 3 are)");
  bytes.replace(4, 4, std::string("\0\0\0\3", 4));
  EXPECT_EQ(ParseError(bytes), "bad.gguf: big-endian GGUF is not supported");
}

TEST(GgufFileTest, RefusesImpossibleCounts) {
  EXPECT_EQ(ParseError(GgufBytes(uint64_t{1} << 60, 0).bytes()),
            "bad.gguf: damaged GGUF: it claims 1152921504606846976 tensors and 0 metadata values");
  GgufBytes array(0, 1);
  array.AddString("k").Add<uint32_t>(9).Add<uint32_t>(4).Add<uint64_t>(1 << 20);
  EXPECT_EQ(ParseError(array.bytes()),
            "bad.gguf: damaged GGUF: metadata \"k\" claims 1048576 elements");
  GgufBytes text(0, 1);
  text.AddString("k").Add<uint32_t>(8).Add<uint64_t>(~uint64_t{0});
  EXPECT_EQ(ParseError(text.bytes()), absl::StrCat("bad.gguf: damaged GGUF: the file ends at byte ",
                                                   text.bytes().size(), " inside k"));
}

TEST(GgufFileTest, RefusesDuplicateNames) {
  GgufBytes keys(0, 2);
  keys.AddString("k").Add<uint32_t>(4).Add<uint32_t>(1);
  keys.AddString("k").Add<uint32_t>(4).Add<uint32_t>(1);
  EXPECT_EQ(ParseError(keys.bytes()), "bad.gguf: damaged GGUF: metadata key \"k\" occurs twice");
  GgufBytes tensors(2, 0);
  tensors.AddTensor("t", 4, 2, 0, 0).AddTensor("t", 4, 2, 0, 32);
  EXPECT_EQ(ParseError(tensors.WithData(64)), "bad.gguf: damaged GGUF: tensor \"t\" occurs twice");
}

TEST(GgufFileTest, RefusesImpossibleTensors) {
  const auto error = [](int64_t columns, int64_t rows, uint32_t type, uint64_t offset) {
    return ParseError(GgufBytes(1, 0).AddTensor("t", columns, rows, type, offset).WithData(64));
  };
  EXPECT_TRUE(GgufHeader::Parse(GgufBytes(1, 0).AddTensor("t", 4, 4, 0, 0).WithData(64), "").ok());
  EXPECT_THAT(error(4, 8, 0, 0), HasSubstr("the file ends before tensor \"t\" does"));
  EXPECT_THAT(error(4, 4, 0, 32), HasSubstr("the file ends before tensor \"t\" does"));
  EXPECT_THAT(error(4, 4, 0, ~uint64_t{31}), HasSubstr("the file ends before tensor \"t\" does"));
  EXPECT_THAT(error(4, 4, 0, 4), HasSubstr("tensor \"t\" is not aligned"));
  EXPECT_THAT(error(4, 4, 8, 0), HasSubstr("a shape that type Q8_0 cannot have"));
  EXPECT_THAT(error(-4, -4, 0, 0), HasSubstr("a shape that type F32 cannot have"));
  EXPECT_THAT(error(int64_t{1} << 40, int64_t{1} << 40, 0, 0), HasSubstr("cannot have"));
  EXPECT_THAT(error(int64_t{1} << 31, int64_t{1} << 31, 0, 0), HasSubstr("is too large"));
  EXPECT_THAT(error(4, 4, 99, 0), HasSubstr("tensor \"t\" has the unknown type 99"));
}

TEST(GgufFileTest, RefusesOverlappingTensors) {
  GgufBytes tensors(2, 0);
  tensors.AddTensor("a", 4, 4, 0, 0).AddTensor("b", 4, 2, 0, 32);
  EXPECT_EQ(ParseError(tensors.WithData(64)), "bad.gguf: damaged GGUF: two tensors overlap");
}

TEST(GgufFileTest, RefusesAFileThatIsCutAnywhere) {
  const std::string bytes = TinyLlamaBytes();
  for (size_t size = 0; size < bytes.size(); size += size < 3000 ? 1 : 997) {
    EXPECT_FALSE(GgufHeader::Parse(bytes.substr(0, size), "cut.gguf").ok()) << size;
  }
}

// Random damage is either refused or gives tensors that lie inside of the file.
TEST(GgufFileTest, SurvivesRandomDamage) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::string original = TinyLlamaBytes();
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = original;
    for (int edit = 0; edit < 1 + round % 4; ++edit) {
      bytes[random() % 3000] = static_cast<char>(random());
    }
    const auto header = GgufHeader::Parse(bytes, "damaged.gguf");
    if (!header.ok()) {
      EXPECT_EQ(ReasonOf(header.status()), Reason::kModelInvalid);
      continue;
    }
    for (const GgufTensor& tensor : header->tensors()) {
      EXPECT_GE(tensor.data.data(), bytes.data());
      EXPECT_LE(tensor.data.data() + tensor.data.size(), bytes.data() + bytes.size());
    }
  }
}

}  // namespace
}  // namespace traind
