#include "worker/data/assistant_turns.h"

#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/bytetok.h"
#include "worker/data/packed_batch.h"

namespace traind {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

TextModel WithTemplate(const std::string& source) { return Bytetok({{"chat_template", source}}); }

TextModel GoldenTemplate(const std::string& name) {
  return WithTemplate(GoldenText("text/templates/" + name + ".jinja"));
}

Json Conversation(const std::vector<std::pair<std::string, std::string>>& turns) {
  Json messages = Json::array();
  for (const auto& [role, content] : turns) {
    messages.push_back({{"role", role}, {"content", content}});
  }
  return messages;
}

TokenizedChat Tokenize(const TextModel& model, const Json& messages) {
  auto chat = TokenizeChat(model, messages, Json::object());
  EXPECT_TRUE(chat.ok()) << chat.status();
  return chat.ok() ? *std::move(chat) : TokenizedChat();
}

// What is trained, as text.
std::string Trained(const TextModel& model, const TokenizedChat& chat) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < chat.ids.size(); ++i) {
    if (chat.supervised[i] != 0) ids.push_back(chat.ids[i]);
  }
  return *model.tokenizer->Decode(ids, /*skip_special_tokens=*/false);
}

std::string TrainedText(const TextModel& model, const Json& messages) {
  return Trained(model, Tokenize(model, messages));
}

// Case C08: the token that ends a turn is trained although it is not EOS, with and without marks.
TEST(AssistantTurnsTest, TheTurnsEndIsTrained) {
  const Json expected = GoldenJson("cases/C08/expected.json");
  for (const char* name : {"gemma_like.jinja", "gemma_like_no_markers.jinja"}) {
    SCOPED_TRACE(name);
    const TextModel model = WithTemplate(GoldenText(std::string("cases/C08/") + name));
    const TokenizedChat chat = Tokenize(model, expected["messages"]);
    EXPECT_EQ(chat.ids, expected["ids"].get<std::vector<int32_t>>());
    std::vector<int32_t> labels;
    for (size_t i = 0; i < chat.ids.size(); ++i) {
      labels.push_back(chat.supervised[i] != 0 ? chat.ids[i] : kIgnoreIndex);
    }
    EXPECT_EQ(labels, expected["labels"].get<std::vector<int32_t>>());
    EXPECT_FALSE(chat.turn_without_stop_token);
  }
}

TEST(AssistantTurnsTest, GenerationPromptAndTailAreNotTrained) {
  const TextModel model = WithTemplate(
      "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
      "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  const Json messages = Conversation({{"system", "s"},
                                      {"user", "assistant"},
                                      {"assistant", "assistant"},
                                      {"user", "b"},
                                      {"assistant", ""}});
  EXPECT_EQ(TrainedText(model, messages), "assistant<|im_end|><|im_end|>");
}

TEST(AssistantTurnsTest, EarlierTurnsThatAreRenderedOtherwiseAreFound) {
  const TextModel model = GoldenTemplate("thinking");
  const Json messages =
      Conversation({{"user", "a"}, {"assistant", "x"}, {"user", "b"}, {"assistant", "y"}});
  EXPECT_EQ(TrainedText(model, messages), "x<|im_end|><think>\n\n</think>\n\ny<|im_end|>");
}

TEST(AssistantTurnsTest, ATurnThatIsRewrittenBeyondRecognitionIsAnError) {
  const TextModel model =
      WithTemplate("{% for m in messages %}{{ m.role }}:{{ m.content | length }};{% endfor %}");
  const auto chat =
      TokenizeChat(model, Conversation({{"user", "a"}, {"assistant", "x"}}), Json::object());
  EXPECT_EQ(ReasonOf(chat.status()), Reason::kTextInvalid);
  EXPECT_THAT(std::string(chat.status().message()), HasSubstr("messages[1] cannot be found"));
  EXPECT_THAT(std::string(chat.status().message()), HasSubstr("{% generation %}"));
}

TEST(AssistantTurnsTest, AConversationMayBeginWithTheAssistant) {
  const TextModel model = GoldenTemplate("thinking");
  EXPECT_EQ(TrainedText(model, Conversation({{"assistant", "hi"}, {"user", "u"}})), "hi<|im_end|>");
}

TEST(AssistantTurnsTest, ATurnWithoutAStopTokenIsReported) {
  const TextModel model = WithTemplate(
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}assistant: {% endif %}");
  const TokenizedChat chat = Tokenize(model, Conversation({{"user", "a"}, {"assistant", "x"}}));
  EXPECT_TRUE(chat.turn_without_stop_token);
  EXPECT_EQ(Trained(model, chat), "x\n");
}

TEST(AssistantTurnsTest, ToolsReachTheTemplate) {
  const TextModel model = WithTemplate(
      "{{ tools[0] }}{% for m in messages %}{% generation %}"
      "{{ m.content }}<eos>{% endgeneration %}{% endfor %}");
  const auto chat = TokenizeChat(model, Conversation({{"assistant", "x"}}), {{"tools", {"T"}}});
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(*model.tokenizer->Decode(chat->ids, false), "Tx<eos>");
  EXPECT_EQ(Trained(model, *chat), "x<eos>");
}

TEST(AssistantTurnsTest, TheTemplatesErrorIsKept) {
  const auto chat =
      TokenizeChat(GoldenTemplate("turns"), Conversation({{"assistant", "x"}}), Json::object());
  EXPECT_THAT(std::string(chat.status().message()),
              HasSubstr("user and assistant must take turns"));
}

}  // namespace
}  // namespace traind
