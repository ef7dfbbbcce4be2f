#include "common/modelspec/safetensors_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const char kTinyLlama[] = TRAIND_TEST_DATA "/golden/weights/tinyllama/model.safetensors";

std::string File(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header +
         std::string(data_bytes, '\0');
}

// The message of a failed parse, which must carry MODEL_INVALID and the path.
std::string ParseError(const std::string& bytes) {
  const auto header = SafetensorsHeader::Parse(bytes, "bad.safetensors");
  EXPECT_FALSE(header.ok());
  EXPECT_EQ(ReasonOf(header.status()), Reason::kModelInvalid);
  EXPECT_EQ(MetadataOf(header.status(), "path"), "bad.safetensors");
  return std::string(header.status().message());
}

std::string Tensor(const char* dtype, const char* shape, const char* offsets) {
  return absl::StrCat(R"("dtype":")", dtype, R"(","shape":)", shape, R"(,"data_offsets":)",
                      offsets);
}

std::string OneTensor(const char* dtype, const char* shape, const char* offsets) {
  return absl::StrCat(R"({"t":{)", Tensor(dtype, shape, offsets), "}}");
}

TEST(SafetensorsFileTest, ReadsWhatPythonWrote) {
  const auto file = SafetensorsFile::Open(kTinyLlama);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->header().metadata().at("format"), "pt");
  EXPECT_EQ(file->header().tensors().size(), 21u);
  const SafetensorsTensor& head = file->header().tensors().at("lm_head.weight");
  EXPECT_EQ(head.dtype, "F32");
  EXPECT_THAT(head.shape, ElementsAre(266, 16));
  EXPECT_EQ(head.data.size(), 266u * 16 * 4);
}

TEST(SafetensorsFileTest, MissingFileIsNotFound) {
  EXPECT_EQ(ReasonOf(SafetensorsFile::Open("/nonexistent/a.safetensors").status()),
            Reason::kModelNotFound);
}

TEST(SafetensorsFileTest, RefusesBadHeaders) {
  EXPECT_EQ(ParseError("abc"), "bad.safetensors: damaged safetensors file: it has only 3 bytes");
  EXPECT_EQ(ParseError(std::string(8, '\xff')),
            "bad.safetensors: damaged safetensors file: its header should have "
            "18446744073709551615 bytes, the file has 8");
  EXPECT_THAT(ParseError(File("{\"t\": ", 0)), HasSubstr("not valid JSON: parse error at line 1"));
  EXPECT_EQ(ParseError(File("[]", 0)), "bad.safetensors: not a JSON object");
  EXPECT_EQ(ParseError(File(R"({"t":{},"t":{}})", 0)),
            "bad.safetensors: the key \"t\" occurs twice");
  EXPECT_THAT(ParseError(File(R"({"t":{"dtype":"F32"}})", 0)),
              HasSubstr("tensor \"t\" is not described by dtype, shape and data_offsets"));
  EXPECT_THAT(ParseError(File(OneTensor("F32", "[-1]", "[0,4]"), 4)), HasSubstr("not described"));
  EXPECT_THAT(ParseError(File(R"({"__metadata__":{"a":1}})", 0)), HasSubstr("is not a string"));
}

TEST(SafetensorsFileTest, RefusesSizesThatDoNotFit) {
  EXPECT_TRUE(SafetensorsHeader::Parse(File(OneTensor("F32", "[2]", "[0,8]"), 8), "").ok());
  EXPECT_THAT(ParseError(File(OneTensor("F99", "[2]", "[0,8]"), 8)),
              HasSubstr("tensor \"t\" has the unknown dtype F99"));
  EXPECT_THAT(ParseError(File(OneTensor("F32", "[3]", "[0,8]"), 8)),
              HasSubstr("lies at [0, 8), but its shape and dtype take 12 bytes"));
  EXPECT_THAT(ParseError(File(OneTensor("F32", "[4611686018427387904,4]", "[0,8]"), 8)),
              HasSubstr("tensor \"t\" is too large"));
  EXPECT_EQ(ParseError(File(OneTensor("F32", "[2]", "[0,8]"), 4)),
            "bad.safetensors: damaged safetensors file: tensor \"t\" ends at byte 8 of the data, "
            "which has 4; fetch the file again");
}

TEST(SafetensorsFileTest, RefusesHolesOverlapsAndLeftovers) {
  const auto two = [](const char* first, const char* second) {
    return absl::StrCat(R"({"a":{)", Tensor("F32", "[2]", first), R"(},"b":{)",
                        Tensor("F32", "[2]", second), "}}");
  };
  EXPECT_TRUE(SafetensorsHeader::Parse(File(two("[8,16]", "[0,8]"), 16), "").ok());
  EXPECT_THAT(ParseError(File(two("[0,8]", "[4,12]"), 12)), HasSubstr("overlap at byte 4"));
  EXPECT_THAT(ParseError(File(two("[0,8]", "[12,20]"), 20)), HasSubstr("leave a hole at byte 8"));
  EXPECT_THAT(ParseError(File(two("[0,8]", "[8,16]"), 20)), HasSubstr("4 bytes after the last"));
}

TEST(SafetensorsFileTest, RefusesAFileThatIsCutAnywhere) {
  const std::string bytes = *ReadFile(kTinyLlama);
  for (size_t size = 0; size < bytes.size(); size += 97) {
    EXPECT_FALSE(SafetensorsHeader::Parse(bytes.substr(0, size), "cut").ok()) << size;
  }
}

// Random damage is either refused or gives tensors that lie inside of the file.
TEST(SafetensorsFileTest, SurvivesRandomDamage) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::string original = *ReadFile(kTinyLlama);
  for (int round = 0; round < 500; ++round) {
    std::string bytes = original;
    for (int edit = 0; edit < 1 + round % 4; ++edit) {
      bytes[random() % 2000] = static_cast<char>(random());
    }
    const auto header = SafetensorsHeader::Parse(bytes, "damaged");
    if (!header.ok()) continue;
    for (const auto& [name, tensor] : header->tensors()) {
      EXPECT_GE(tensor.data.data(), bytes.data());
      EXPECT_LE(tensor.data.data() + tensor.data.size(), bytes.data() + bytes.size());
    }
  }
}

// The golden file was written by the safetensors package, so ours must be the same bytes.
TEST(SafetensorsFileTest, WritesTheSameBytesAsPython) {
  const auto file = SafetensorsFile::Open(kTinyLlama);
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, tensor] : file->header().tensors()) {
    const float* values = reinterpret_cast<const float*>(tensor.data.data());
    entries.push_back({name, tensor.shape, absl::MakeSpan(values, tensor.data.size() / 4)});
  }
  std::reverse(entries.begin(), entries.end());
  const std::string path = absl::StrCat(testing::TempDir(), "/same_bytes.safetensors");
  ASSERT_TRUE(WriteSafetensors(path, entries).ok());
  EXPECT_EQ(*ReadFile(path), *ReadFile(kTinyLlama));
}

}  // namespace
}  // namespace traind
