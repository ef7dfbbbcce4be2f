#include "worker/data/dataset.h"

#include <algorithm>

#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/bytetok.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using Json = nlohmann::ordered_json;

std::string Rows(const std::string& text) {
  return WriteTestFile(NewTestFolder("data") + "/train.jsonl", text);
}

absl::StatusOr<Dataset> Load(const std::string& path, const TextModel& model,
                             const DatasetOptions& options = DatasetOptions(),
                             RowFormat format = RowFormat::kAuto) {
  return LoadDataset({{path, format}}, model, options);
}

Dataset LoadText(const std::string& text, const TextModel& model,
                 const DatasetOptions& options = DatasetOptions()) {
  auto dataset = Load(Rows(text), model, options);
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  return dataset.ok() ? *std::move(dataset) : Dataset();
}

std::vector<int32_t> LabelsOf(const Example& example) {
  std::vector<int32_t> labels;
  for (size_t i = 0; i < example.input_ids.size(); ++i) {
    labels.push_back(example.supervised[i] != 0 ? example.input_ids[i] : kIgnoreIndex);
  }
  return labels;
}

std::string MessageOf(const absl::StatusOr<Dataset>& dataset) {
  return std::string(dataset.status().message());
}

// Case C01.
TEST(DatasetTest, AByteOrderMarkChangesNoToken) {
  const TextModel model = Bytetok();
  const auto with = Load(GoldenPath("cases/C01/with_bom.jsonl"), model);
  const auto without = Load(GoldenPath("cases/C01/without_bom.jsonl"), model);
  ASSERT_TRUE(with.ok() && without.ok()) << with.status() << without.status();
  ASSERT_EQ(with->examples.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(with->examples[i].input_ids, without->examples[i].input_ids);
  }
  const Json prompt =
      GoldenJson("cases/C01/expected.json")["with_bom.jsonl"]["first_row_prompt_ids"];
  EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), with->examples[0].input_ids.begin()));
}

// Case C05: NUL and a surrogate pair are text like any other.
TEST(DatasetTest, NulAndSurrogatePairsReachTheTokenizer) {
  const Json expected = GoldenJson("cases/C05/expected.json")["bad_rows.jsonl"];
  const Dataset dataset = LoadText(
      "{\"prompt\":\"\\ud83d\\ude00\",\"completion\":\"x\"}\n{\"prompt\":\"a\\u0000b\","
      "\"completion\":\"x\"}\n",
      Bytetok());
  ASSERT_EQ(dataset.examples.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const Json& prompt = expected[i == 0 ? "line6_prompt_ids" : "line7_prompt_ids"];
    EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), dataset.examples[i].input_ids.begin()));
  }
}

// Case C06: EOS stays a label although the pad token has the same id.
TEST(DatasetTest, EosIsTrainedAlsoIfItIsThePadToken) {
  const Json expected = GoldenJson("cases/C06/expected.json");
  Json patch = GoldenJson("cases/C06/tokenizer_override.json");
  patch["add_bos_token"] = true;
  const auto dataset = Load(GoldenPath("cases/C06/rows.jsonl"), Bytetok(patch));
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  ASSERT_EQ(dataset->examples.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    // The case pads on the right; our rows end where its attention mask does.
    const auto mask = expected["attention_mask"][i].get<std::vector<int>>();
    const auto length = static_cast<size_t>(std::count(mask.begin(), mask.end(), 1));
    auto ids = expected["input_ids"][i].get<std::vector<int32_t>>();
    auto labels = expected["labels"][i].get<std::vector<int32_t>>();
    ids.resize(length);
    labels.resize(length);
    EXPECT_EQ(dataset->examples[i].input_ids, ids);
    EXPECT_EQ(LabelsOf(dataset->examples[i]), labels);
  }
  EXPECT_EQ(dataset->report.supervised_tokens, expected["trainable_tokens"]);
  EXPECT_THAT(dataset->report.warnings, IsEmpty());
}

// Case C07 for the formats that are no chats: one BOS, also if the data types one.
TEST(DatasetTest, EveryFormatHasOneBos) {
  const TextModel adds = Bytetok({{"add_bos_token", true}});
  const Dataset dataset = LoadText("{\"text\":\"a\"}\n{\"text\":\"<bos>a\"}\n", adds);
  EXPECT_THAT(dataset.examples[0].input_ids, ElementsAre(1, 107, 2));
  EXPECT_THAT(dataset.examples[1].input_ids, ElementsAre(1, 107, 2));
  const Dataset pairs = LoadText(
      "{\"prompt\":\"<bos>a\",\"completion\":\"b\"}\n{\"prompt\":\"\",\"completion\":\"b\"}\n",
      adds);
  EXPECT_THAT(LabelsOf(pairs.examples[0]), ElementsAre(-100, -100, 108, 2));
  EXPECT_THAT(LabelsOf(pairs.examples[1]), ElementsAre(-100, 108, 2));
  const Dataset plain = LoadText("{\"text\":\"a\"}\n", Bytetok());
  EXPECT_THAT(plain.examples[0].input_ids, ElementsAre(107, 2));
}

// Case C43: rows whose completion lies beyond max_length.
TEST(DatasetTest, RowsWithoutATokenToTrainAreDroppedAndCounted) {
  const Json expected = GoldenJson("cases/C43/expected.json");
  const TextModel model = Bytetok({{"add_bos_token", true}});
  DatasetOptions options;
  options.max_length = expected["seq_len"];
  const auto dataset = Load(GoldenPath("cases/C43/rows.jsonl"), model, options);
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(dataset->report.rows_dropped,
              ElementsAre(Pair("no_supervised_tokens_after_truncation",
                               expected["dropped_rows"].get<int64_t>())));
  EXPECT_EQ(dataset->report.rows_read, 3);
  EXPECT_EQ(dataset->report.rows_kept, expected["kept"]);
  ASSERT_EQ(dataset->examples.size(), 1u);
  EXPECT_EQ(dataset->examples[0].input_ids, expected["kept_ids"].get<std::vector<int32_t>>());
  EXPECT_EQ(LabelsOf(dataset->examples[0]), expected["kept_labels"].get<std::vector<int32_t>>());
}

TEST(DatasetTest, ADataSetOfWhichNothingIsLeftIsAnError) {
  DatasetOptions options;
  options.max_length = 4;
  const auto dataset =
      Load(Rows("{\"prompt\":\"long "
                "prompt\",\"completion\":\"x\"}\n{\"prompt\":\"another\",\"completion\":\"y\"}\n"),
           Bytetok(), options);
  EXPECT_EQ(dataset.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(dataset.status()), Reason::kNoSupervisedTokens);
  EXPECT_EQ(
      MessageOf(dataset),
      "none of the 2 rows has a token to train on (no_supervised_tokens_after_truncation: 2); "
      "raise max_length, which is 4, or check that completions and assistant turns are not "
      "empty");
  EXPECT_EQ(MetadataOf(dataset.status(), "rows"), "2");
}

TEST(DatasetTest, ConversationsWithoutAnAssistantAreDropped) {
  const std::string user_only = "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n";
  const auto none = Load(Rows(user_only), Bytetok());
  EXPECT_EQ(ReasonOf(none.status()), Reason::kNoSupervisedTokens);
  EXPECT_THAT(MessageOf(none), HasSubstr("(no_supervised_tokens: 1)"));
  const Dataset some = LoadText(user_only +
                                    "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{"
                                    "\"role\":\"assistant\",\"content\":\"b\"}]}\n",
                                Bytetok());
  EXPECT_THAT(some.report.rows_dropped, ElementsAre(Pair("no_supervised_tokens", 1)));
  EXPECT_EQ(some.report.supervised_tokens, 2);
}

TEST(DatasetTest, LongRowsAreCutOnTheRight) {
  DatasetOptions options;
  options.max_length = 4;
  const Dataset dataset =
      LoadText("{\"text\":\"abcdef\"}\n{\"text\":\"ab\"}\n", Bytetok(), options);
  EXPECT_THAT(dataset.examples[0].input_ids, ElementsAre(107, 108, 109, 110));
  EXPECT_EQ(dataset.report.rows_truncated, 1);
  EXPECT_EQ(dataset.report.tokens, 7);
  EXPECT_EQ(dataset.report.supervised_tokens, 5);
  EXPECT_THAT(dataset.report.warnings, ElementsAre("1 row: cut to max_length, 4 tokens"));
}

TEST(DatasetTest, EosIsNotDoubled) {
  const Dataset dataset = LoadText("{\"text\":\"a<eos>\"}\n", Bytetok());
  EXPECT_THAT(dataset.examples[0].input_ids, ElementsAre(107, 2));
}

TEST(DatasetTest, PromptAndCompletionMayBeMessages) {
  const Dataset dataset = LoadText(
      "{\"prompt\":[{\"role\":\"user\",\"content\":\"a\"}],"
      "\"completion\":[{\"role\":\"assistant\",\"content\":\"b\"}]}\n",
      Bytetok());
  const Example& example = dataset.examples[0];
  const TextModel model = Bytetok();
  EXPECT_EQ(*model.tokenizer->Decode(example.input_ids, false),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n");
  const auto first = std::find(example.supervised.begin(), example.supervised.end(), 1);
  const auto masked = static_cast<size_t>(first - example.supervised.begin());
  EXPECT_EQ(example.input_ids[masked], 108);
  EXPECT_EQ(std::count(first, example.supervised.end(), 1), 3) << "b, <|im_end|> and a line break";
}

TEST(DatasetTest, LossOnAllTrainsThePromptToo) {
  DatasetOptions options;
  options.loss_on = LossOn::kAll;
  const Dataset pairs = LoadText("{\"prompt\":\"a\",\"completion\":\"b\"}\n", Bytetok(), options);
  EXPECT_THAT(LabelsOf(pairs.examples[0]), ElementsAre(107, 108, 2));
  const Dataset chats =
      LoadText("{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n", Bytetok(), options);
  EXPECT_EQ(std::count(chats.examples[0].supervised.begin(), chats.examples[0].supervised.end(), 0),
            0);
}

TEST(DatasetTest, LossOnCompletionOfTextsIsRefused) {
  DatasetOptions options;
  options.loss_on = LossOn::kCompletion;
  const auto dataset = Load(Rows("{\"text\":\"a\"}\n"), Bytetok(), options);
  EXPECT_EQ(ReasonOf(dataset.status()), Reason::kDatasetInvalid);
  EXPECT_THAT(MessageOf(dataset), HasSubstr("text rows have no completion to train on"));
}

TEST(DatasetTest, TroubleWithMasksIsReported) {
  // `<e` + `os>` becomes one token of the whole, so that the prompt's tokens are no prefix.
  const Dataset dataset = LoadText("{\"prompt\":\"a<e\",\"completion\":\"os>b\"}\n", Bytetok());
  ASSERT_THAT(dataset.report.warnings, testing::SizeIs(1));
  EXPECT_THAT(dataset.report.warnings[0], HasSubstr("1 row: the prompt's tokens do not begin"));
  const Dataset no_eos = LoadText("{\"text\":\"ab\"}\n", Bytetok({{"eos_token", nullptr}}));
  ASSERT_THAT(no_eos.report.warnings, testing::SizeIs(1));
  EXPECT_THAT(no_eos.report.warnings[0], HasSubstr("the model does not learn to stop"));
}

TEST(DatasetTest, SeveralFilesOfSeveralFormatsFollowEachOther) {
  const auto dataset =
      LoadDataset({{Rows("{\"text\":\"a\"}\n"), RowFormat::kAuto},
                   {Rows("{\"prompt\":\"b\",\"completion\":\"c\"}\n"), RowFormat::kAuto}},
                  Bytetok(), DatasetOptions());
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_THAT(dataset->examples[0].input_ids, ElementsAre(107, 2));
  EXPECT_THAT(dataset->examples[1].input_ids, ElementsAre(108, 109, 2));
}

TEST(DatasetTest, Row7IsNotJson) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += "{\"text\":\"a\"}\n";
  const std::string path = Rows(text + "{\"text\": oops}\n{\"text\":\"a\"}\n");
  const auto dataset = Load(path, Bytetok());
  EXPECT_EQ(ReasonOf(dataset.status()), Reason::kDatasetInvalid);
  EXPECT_THAT(MessageOf(dataset), HasSubstr(path + " line 7 column 10: not valid JSON: "));
  EXPECT_EQ(MetadataOf(dataset.status(), "file"), path);
  EXPECT_EQ(MetadataOf(dataset.status(), "line"), "7");
}

TEST(DatasetTest, MissingAndEmptyFilesAreNamed) {
  const auto missing = Load("/nonexistent/train.jsonl", Bytetok());
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(missing.status()), Reason::kDatasetNotFound);
  const std::string path = Rows("\n");
  const auto empty = Load(path, Bytetok());
  EXPECT_EQ(ReasonOf(empty.status()), Reason::kDatasetInvalid);
  EXPECT_EQ(MessageOf(empty), path + " has no rows");
}

// A row, and what the message says about it.
struct WrongRow {
  const char* row;
  const char* message;
  RowFormat format = RowFormat::kAuto;
};

TEST(DatasetTest, RowsOfAnotherShapeAreRefusedWithTheField) {
  const TextModel model = Bytetok();
  for (const WrongRow& wrong : {
           WrongRow{R"({"a":1,"b":2})",
                    "neither `messages`, nor `prompt` and `completion`, nor "
                    "`text`; its fields are: a, b"},
           WrongRow{"{}", "its fields are: none"},
           WrongRow{R"({"text":7})", "`text` must be a text, but is number"},
           WrongRow{R"({"prompt":"a","completion":null})", "but are string and null"},
           WrongRow{R"({"prompt":"a"})", "the field `completion` is missing",
                    RowFormat::kPromptCompletion},
           WrongRow{R"({"messages":[]})", "`messages` must be a list of at least one message"},
           WrongRow{R"({"messages":["a"]})", "`messages[0]` must be an object"},
           WrongRow{R"({"messages":[{"content":"a"}]})", "`messages[0].role` must be a text"},
           WrongRow{R"({"messages":[{"role":"user","content":3}]})",
                    "`messages[0].content` must be a text, but is number"},
       }) {
    SCOPED_TRACE(wrong.row);
    const auto dataset = Load(Rows(wrong.row), model, DatasetOptions(), wrong.format);
    EXPECT_EQ(ReasonOf(dataset.status()), Reason::kDatasetInvalid);
    EXPECT_THAT(MessageOf(dataset), HasSubstr("train.jsonl line 1: "));
    EXPECT_THAT(MessageOf(dataset), HasSubstr(wrong.message));
  }
}

TEST(DatasetTest, MessagesNeedAChatTemplate) {
  const auto dataset = Load(Rows(R"({"messages":[{"role":"user","content":"a"}]})"),
                            Bytetok({{"chat_template", nullptr}}));
  EXPECT_EQ(ReasonOf(dataset.status()), Reason::kDatasetInvalid);
  EXPECT_THAT(MessageOf(dataset), HasSubstr("has no chat template"));
}

TEST(DatasetTest, ProgressCanStopTheLoading) {
  std::string text;
  for (int i = 0; i < 600; ++i) text += "{\"text\":\"a\"}\n";
  std::vector<int64_t> seen;
  DatasetOptions options;
  options.on_progress = [&](int64_t rows) {
    seen.push_back(rows);
    return rows < 512 ? absl::OkStatus() : absl::CancelledError("enough");
  };
  EXPECT_EQ(Load(Rows(text), Bytetok(), options).status(), absl::CancelledError("enough"));
  EXPECT_THAT(seen, ElementsAre(256, 512));
}

TEST(DatasetTest, NamesOfFormatsAndLosses) {
  EXPECT_EQ(*RowFormatFromName(""), RowFormat::kAuto);
  EXPECT_EQ(*RowFormatFromName("messages"), RowFormat::kMessages);
  EXPECT_EQ(*LossOnFromName(""), LossOn::kDefault);
  EXPECT_EQ(*LossOnFromName("all"), LossOn::kAll);
  EXPECT_EQ(ReasonOf(RowFormatFromName("alpaca").status()), Reason::kInvalidField);
  EXPECT_EQ(FieldViolationsOf(LossOnFromName("prompt").status())[0].description,
            "`prompt` is none of completion, all");
}

TEST(DatasetTest, OptionsAreChecked) {
  DatasetOptions options;
  options.max_length = 1;
  EXPECT_EQ(ReasonOf(Load(Rows("{}"), Bytetok(), options).status()), Reason::kInvalidField);
  EXPECT_EQ(ReasonOf(LoadDataset({}, Bytetok(), DatasetOptions()).status()), Reason::kInvalidField);
}

}  // namespace
}  // namespace traind
