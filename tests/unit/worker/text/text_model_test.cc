#include "worker/text/text_model.h"

#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/bytetok.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;

TEST(TextModelTest, ReadsAHuggingFaceFolder) {
  const TextModel model = Bytetok();
  EXPECT_EQ(model.bos.id, 1);
  EXPECT_EQ(model.eos.text, "<eos>");
  EXPECT_EQ(model.pad.id, 0);
  EXPECT_FALSE(model.add_bos);
  EXPECT_EQ(model.model_max_length, 4096);
  ASSERT_NE(model.chat_template, nullptr);
  EXPECT_TRUE(model.chat_template->has_generation());
}

TEST(TextModelTest, SpecialTokensMayBeObjectsOrNull) {
  const TextModel model = Bytetok(
      {{"eos_token", {{"content", "<|im_end|>"}, {"lstrip", false}}}, {"pad_token", nullptr}});
  EXPECT_EQ(model.eos.id, 5);
  EXPECT_EQ(model.pad.id, -1);
}

TEST(TextModelTest, ASpecialTokenThatIsNotInTheVocabularyIsAnError) {
  const auto model = LoadTextModel(BytetokFolder({{"eos_token", "<nope>"}}));
  EXPECT_EQ(ReasonOf(model.status()), Reason::kModelInvalid);
  EXPECT_THAT(std::string(model.status().message()),
              HasSubstr("tokenizer_config.json names eos_token '<nope>', which the tokenizer does "
                        "not have"));
}

TEST(TextModelTest, TheTemplateFileWinsOverTheConfig) {
  const std::string folder = BytetokFolder(Json::object());
  WriteTestFile(folder + "/chat_template.jinja", "from the file");
  EXPECT_EQ(LoadTextModel(folder)->chat_template->source(), "from the file");
}

TEST(TextModelTest, AListOfTemplatesGivesTheDefaultOne) {
  const TextModel model =
      Bytetok({{"chat_template", Json::array({{{"name", "tool_use"}, {"template", "t"}},
                                              {{"name", "default"}, {"template", "d"}}})}});
  EXPECT_EQ(model.chat_template->source(), "d");
  EXPECT_EQ(Bytetok({{"chat_template", nullptr}}).chat_template, nullptr);
  const auto wrong = LoadTextModel(BytetokFolder({{"chat_template", 7}}));
  EXPECT_EQ(ReasonOf(wrong.status()), Reason::kModelInvalid);
}

TEST(TextModelTest, MissingThingsAreNamed) {
  const auto nowhere = LoadTextModel("/nonexistent/model");
  EXPECT_EQ(ReasonOf(nowhere.status()), Reason::kModelNotFound);
  EXPECT_EQ(nowhere.status().message(),
            "the model /nonexistent/model does not exist or cannot be reached");
  const std::string folder = NewTestFolder("empty");
  const auto empty = LoadTextModel(folder);
  EXPECT_EQ(ReasonOf(empty.status()), Reason::kModelInvalid);
  EXPECT_THAT(std::string(empty.status().message()), HasSubstr("has no tokenizer.json"));
  WriteTestFile(folder + "/tokenizer.json", GoldenText("bytetok/tokenizer.json"));
  WriteTestFile(folder + "/tokenizer_config.json", "[]");
  EXPECT_EQ(LoadTextModel(folder).status().message(),
            folder + "/tokenizer_config.json is not a JSON object");
}

TEST(TextModelTest, AFileThatIsNoGgufIsAnError) {
  const std::string path = WriteTestFile(NewTestFolder("gguf") + "/m.gguf", "not a model");
  EXPECT_EQ(ReasonOf(LoadTextModel(path).status()), Reason::kModelInvalid);
}

// Case C07: exactly one BOS, whoever adds it.
TEST(TextModelTest, BosStandsExactlyOnceBeforeARenderedChat) {
  const Json expected = GoldenJson("cases/C07/expected.json");
  for (const Json& row : expected["rows"]) {
    SCOPED_TRACE(row.dump());
    const std::string name =
        row["template_emits_bos"] ? "template_with_bos.jinja" : "template_without_bos.jinja";
    const TextModel model = Bytetok({{"add_bos_token", row["tokenizer_adds_bos"]},
                                     {"chat_template", GoldenText("cases/C07/" + name)}});
    const auto ids = model.EncodePrompt(expected["messages"].dump());
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, row["ids"].get<std::vector<int32_t>>());
  }
}

TEST(TextModelTest, BosThatIsTypedInATextIsNotDoubled) {
  const TextModel model = Bytetok({{"add_bos_token", true}});
  EXPECT_THAT(*model.Encode("a"), ElementsAre(1, 107));
  EXPECT_THAT(*model.Encode("<bos>a"), ElementsAre(1, 107));
  EXPECT_THAT(*model.Encode(""), ElementsAre(1));
  const auto encoding = model.EncodeWithOffsets("a");
  EXPECT_THAT(encoding->offsets, ElementsAre(ByteRange{0, 0}, ByteRange{0, 1}));
}

TEST(TextModelTest, ThePostProcessorDecidesAboutBosWhereTheConfigIsSilent) {
  const std::string folder = BytetokFolder({{"add_bos_token", nullptr}});
  EXPECT_FALSE(LoadTextModel(folder)->add_bos);
  Json json = GoldenJson("bytetok/tokenizer.json");
  const Json bos = {{"SpecialToken", {{"id", "<bos>"}, {"type_id", 0}}}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", Json::array({bos, text})},
      {"pair", Json::array({bos, text})},
      {"special_tokens", {{"<bos>", {{"id", "<bos>"}, {"ids", {1}}, {"tokens", {"<bos>"}}}}}}};
  WriteTestFile(folder + "/tokenizer.json", json.dump());
  const auto model = LoadTextModel(folder);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(model->add_bos);
  EXPECT_THAT(*model->Encode("a"), ElementsAre(1, 107));
}

TEST(TextModelTest, AnswersStopAtEosAndAtTheEndOfATurn) {
  EXPECT_THAT(Bytetok().StopIds(), ElementsAre(2, 5));
  const TextModel gemma =
      Bytetok({{"chat_template", GoldenText("cases/C08/gemma_like_no_markers.jinja")}});
  EXPECT_THAT(gemma.StopIds(), ElementsAre(2, 7));
  EXPECT_THAT(Bytetok({{"chat_template", nullptr}}).StopIds(), ElementsAre(2));
}

TEST(TextModelTest, MessagesWithoutATemplateAreAnError) {
  const TextModel model = Bytetok({{"chat_template", nullptr}});
  const auto ids = model.EncodePrompt("[]");
  EXPECT_EQ(ReasonOf(ids.status()), Reason::kTextInvalid);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("has no chat template"));
}

TEST(TextModelTest, WrittenFilesGiveTheSameModel) {
  const TextModel model = Bytetok({{"add_bos_token", true}});
  const std::string folder = NewTestFolder("out");
  ASSERT_TRUE(WriteTokenizerFiles(model, folder).ok());
  const auto again = LoadTextModel(folder);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again->Encode("né<|im_end|>"), *model.Encode("né<|im_end|>"));
  EXPECT_TRUE(again->add_bos);
  EXPECT_EQ(again->eos.id, model.eos.id);
  EXPECT_EQ(again->chat_template->source(), model.chat_template->source());
  EXPECT_EQ(again->model_max_length, 4096);
}

TEST(TextModelTest, AFolderThatCannotBeWrittenIsAnError) {
  const absl::Status status = WriteTokenizerFiles(Bytetok(), "/nonexistent/folder");
  EXPECT_EQ(ReasonOf(status), Reason::kOutputFailed) << status;
}

}  // namespace
}  // namespace traind
