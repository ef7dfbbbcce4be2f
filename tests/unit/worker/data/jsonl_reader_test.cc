#include "worker/data/jsonl_reader.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/escaping.h"
#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/bytetok.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr int64_t kLimit = int64_t{8} << 20;

// Rows up to the end or to the first error.
struct Outcome {
  std::vector<JsonlRow> rows;
  absl::Status status;
};

Outcome ReadAll(const std::string& path, int64_t limit = kLimit) {
  Outcome outcome;
  auto reader = JsonlReader::Open(path, limit);
  outcome.status = reader.status();
  while (outcome.status.ok()) {
    auto row = reader->Next();
    outcome.status = row.status();
    if (!row.ok() || !row->has_value()) break;
    outcome.rows.push_back(**std::move(row));
  }
  return outcome;
}

Outcome ReadText(const std::string& text, int64_t limit = kLimit) {
  return ReadAll(WriteTestFile(NewTestFolder("jsonl") + "/rows.jsonl", text), limit);
}

std::vector<int64_t> LinesOf(const Outcome& outcome) {
  std::vector<int64_t> lines;
  for (const JsonlRow& row : outcome.rows) lines.push_back(row.line);
  return lines;
}

std::string MessageOf(const Outcome& outcome) { return std::string(outcome.status.message()); }

// Case C01.
TEST(JsonlReaderTest, AByteOrderMarkAtTheStartIsSkipped) {
  const Outcome with = ReadAll(GoldenPath("cases/C01/with_bom.jsonl"));
  const Outcome without = ReadAll(GoldenPath("cases/C01/without_bom.jsonl"));
  EXPECT_TRUE(with.status.ok()) << with.status;
  ASSERT_EQ(with.rows.size(), 2u);
  ASSERT_EQ(without.rows.size(), 2u);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(with.rows[i].value, without.rows[i].value);
}

TEST(JsonlReaderTest, AByteOrderMarkElsewhereIsRefused) {
  const Outcome outcome = ReadAll(GoldenPath("cases/C01/bom_line2.jsonl"));
  EXPECT_EQ(ReasonOf(outcome.status), Reason::kDatasetInvalid);
  EXPECT_THAT(MessageOf(outcome), HasSubstr("line 2: a byte-order mark may only stand"));
  EXPECT_EQ(MetadataOf(outcome.status, "line"), "2");
}

TEST(JsonlReaderTest, Utf16IsNamed) {
  const Outcome outcome = ReadAll(GoldenPath("cases/C01/utf16le.jsonl"));
  EXPECT_EQ(ReasonOf(outcome.status), Reason::kDatasetInvalid);
  EXPECT_THAT(MessageOf(outcome), HasSubstr("is not UTF-8 (UTF-16 byte-order mark)"));
}

// Case C02.
TEST(JsonlReaderTest, CrLfAndBlankLinesAndAMissingLastLineBreakAreFine) {
  const Json expected = GoldenJson("cases/C02/expected.json")["crlf_blank_noeol.jsonl"];
  const Outcome outcome = ReadAll(GoldenPath("cases/C02/crlf_blank_noeol.jsonl"));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(LinesOf(outcome), expected["physical_line_of_row"].get<std::vector<int64_t>>());
  ASSERT_EQ(outcome.rows.size(), expected["rows"]);
  EXPECT_EQ(outcome.rows[2].value["completion"], "3");
}

TEST(JsonlReaderTest, OnlyLineFeedEndsARow) {
  const Json expected = GoldenJson("cases/C02/expected.json")["unicode_separators.jsonl"];
  const Outcome outcome = ReadAll(GoldenPath("cases/C02/unicode_separators.jsonl"));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(outcome.rows.size(), expected["rows"]);
  EXPECT_EQ(absl::BytesToHexString(outcome.rows[0].value["text"].get<std::string>()),
            expected["row0_utf8_hex"]);
}

TEST(JsonlReaderTest, ACutLastRowIsAnErrorWithItsLine) {
  const Outcome outcome = ReadAll(GoldenPath("cases/C02/truncated_last.jsonl"));
  EXPECT_EQ(outcome.rows.size(), 1u);
  EXPECT_THAT(MessageOf(outcome), HasSubstr("truncated_last.jsonl line 2 column "));
  EXPECT_THAT(MessageOf(outcome), HasSubstr(": not valid JSON: "));
}

TEST(JsonlReaderTest, ALongRowTakesLittleMoreMemoryThanItself) {
  constexpr size_t kSize = size_t{5} << 20;
  const std::string path = WriteTestFile(NewTestFolder("long") + "/rows.jsonl",
                                         "{\"text\":\"" + std::string(kSize, 'a') + "\"}\n");
  rusage before;
  getrusage(RUSAGE_SELF, &before);
  const Outcome outcome = ReadAll(path);
  rusage after;
  getrusage(RUSAGE_SELF, &after);
  ASSERT_EQ(outcome.rows.size(), 1u) << outcome.status;
  EXPECT_EQ(outcome.rows[0].value["text"].get_ref<const std::string&>().size(), kSize);
  EXPECT_LT((after.ru_maxrss - before.ru_maxrss) * 1024, static_cast<int64_t>(5 * kSize));
}

TEST(JsonlReaderTest, ARowBeyondTheLimitIsRefusedWithItsLine) {
  const Outcome outcome =
      ReadText("{\"text\":\"a\"}\n{\"text\":\"" + std::string(100, 'a') + "\"}\n", 50);
  EXPECT_EQ(LinesOf(outcome).size(), 1u);
  EXPECT_THAT(MessageOf(outcome),
              HasSubstr("rows.jsonl line 2 is longer than 50 bytes, the limit for a row"));
}

// Case C05: each row alone, so that the good ones behind bad ones are seen too.
TEST(JsonlReaderTest, RowsThatAreNotStrictJsonAreRefused) {
  const Json expected = GoldenJson("cases/C05/expected.json")["bad_rows.jsonl"];
  const std::string text = GoldenText("cases/C05/bad_rows.jsonl");
  std::vector<int64_t> accepted;
  size_t begin = 0;
  for (int64_t line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const Outcome outcome = ReadText(std::string(static_cast<size_t>(line - 1), '\n') +
                                     text.substr(begin, end - begin));
    begin = end + 1;
    if (outcome.status.ok()) {
      accepted.push_back(line);
      continue;
    }
    EXPECT_EQ(ReasonOf(outcome.status), Reason::kDatasetInvalid);
    EXPECT_TRUE(expected["reject"].contains(std::to_string(line))) << outcome.status;
    EXPECT_THAT(MessageOf(outcome), HasSubstr("rows.jsonl line " + std::to_string(line)));
    EXPECT_NO_THROW(Json(MessageOf(outcome)).dump()) << "the message must be UTF-8";
  }
  EXPECT_EQ(accepted, expected["accept"].get<std::vector<int64_t>>());
}

TEST(JsonlReaderTest, TheReasonIsInTheMessage) {
  EXPECT_THAT(MessageOf(ReadText("{\"a\":1,\"a\":2}")), HasSubstr("a is given twice"));
  EXPECT_THAT(MessageOf(ReadText("{\"a\":NaN}")), HasSubstr("JSON has no NaN or Infinity"));
  EXPECT_THAT(MessageOf(ReadText("{\"a\":Infinity}")), HasSubstr("JSON has no NaN or Infinity"));
  EXPECT_THAT(MessageOf(ReadText("{\"a\":\"\xFF\"}")), HasSubstr("UTF-8"));
  EXPECT_THAT(MessageOf(ReadText("{\"a\":\"\\ud83d\"}")), HasSubstr("surrogate"));
  EXPECT_THAT(MessageOf(ReadText("{\"a\":\"\t\"}")), HasSubstr("control character"));
  EXPECT_THAT(MessageOf(ReadText("{\"a\":1e999}")), HasSubstr("number overflow"));
  EXPECT_THAT(MessageOf(ReadText("[1]")), HasSubstr("line 1: a row must be a JSON object"));
  EXPECT_THAT(MessageOf(ReadText("{} {}")), HasSubstr("line 1 column 4: not valid JSON"));
  EXPECT_THAT(MessageOf(ReadText("{\"a\":" + std::string(5000, '['))), HasSubstr("nested deeper"));
}

TEST(JsonlReaderTest, FilesThatCannotBeReadAreNamed) {
  const Outcome missing = ReadAll("/nonexistent/rows.jsonl");
  EXPECT_EQ(ReasonOf(missing.status), Reason::kDatasetNotFound);
  EXPECT_EQ(MessageOf(missing), "the data file /nonexistent/rows.jsonl does not exist");
  const std::string folder = NewTestFolder("folder");
  const Outcome directory = ReadAll(folder);
  EXPECT_EQ(ReasonOf(directory.status), Reason::kDatasetInvalid);
  EXPECT_EQ(MessageOf(directory), folder + " is a folder; name the JSON Lines file in it");
  const Outcome under_a_file = ReadAll(WriteTestFile(folder + "/f", "x") + "/rows.jsonl");
  EXPECT_EQ(ReasonOf(under_a_file.status), Reason::kDatasetInvalid);
  EXPECT_THAT(MessageOf(under_a_file), HasSubstr("Not a directory"));
}

TEST(JsonlReaderTest, AFileWithoutReadPermissionIsNamed) {
  const std::string path = WriteTestFile(NewTestFolder("locked") + "/rows.jsonl", "{}\n");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  const Outcome outcome = ReadAll(path);
  if (geteuid() == 0) {
    EXPECT_EQ(outcome.rows.size(), 1u) << "root may read everything";
    return;
  }
  EXPECT_EQ(outcome.status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(outcome), HasSubstr(path));
}

TEST(JsonlReaderTest, AnEmptyFileHasNoRows) {
  for (const char* text : {"", "\n\n", "\xEF\xBB\xBF", "  \r\n"}) {
    const Outcome outcome = ReadText(text);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_TRUE(outcome.rows.empty());
  }
}

}  // namespace
}  // namespace traind
