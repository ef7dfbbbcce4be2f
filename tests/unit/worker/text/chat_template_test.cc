#include "worker/text/chat_template.h"

#include <stdlib.h>
#include <time.h>

#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/golden_json.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::ordered_json;

std::unique_ptr<ChatTemplate> Template(const std::string& source) {
  auto chat_template =
      ChatTemplate::Create(source, {{"bos_token", "<s>"}}, "m/chat_template.jinja");
  EXPECT_TRUE(chat_template.ok()) << chat_template.status();
  return *std::move(chat_template);
}

std::vector<ByteRange> RangesOf(const Json& spans) {
  std::vector<ByteRange> ranges;
  for (const Json& span : spans) ranges.push_back({span[0], span[1]});
  return ranges;
}

void ExpectAsRecorded(const ChatTemplate& chat_template, const Json& golden, const Json& expected) {
  const Json& conversation = golden["conversations"][expected["conversation"]];
  Json variables = {{"tools", conversation["tools"]}};
  const auto chat =
      chat_template.RenderWith(conversation["messages"].dump(), expected["add_generation_prompt"],
                               variables.dump(), golden["now"]);
  if (expected.contains("error")) {
    EXPECT_FALSE(chat.ok()) << "Jinja2 says: " << expected["error"] << "\nwe: " << chat->text;
    return;
  }
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(chat->text, expected["text"].get<std::string>());
  EXPECT_EQ(chat->generated, RangesOf(expected["spans"]));
}

// Checks every rendering of a file that tests/golden/text/make_renderings.py wrote.
void ExpectAllAsRecorded(const Json& golden) {
  const std::map<std::string, std::string> special_tokens = golden["special_tokens"];
  int checked = 0;
  for (const auto& [name, source] : golden["templates"].items()) {
    const auto chat_template =
        ChatTemplate::Create(source.get<std::string>(), special_tokens, name);
    EXPECT_TRUE(chat_template.ok()) << chat_template.status();
    if (!chat_template.ok()) continue;
    for (const Json& expected : golden["renderings"]) {
      if (expected["template"] != name) continue;
      SCOPED_TRACE(name + " " + expected["conversation"].get<std::string>() +
                   (expected["add_generation_prompt"] ? " with prompt" : ""));
      ExpectAsRecorded(**chat_template, golden, expected);
      ++checked;
    }
  }
  EXPECT_EQ(checked, golden["renderings"].size());
}

class ChatTemplateTest : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(ChatTemplateTest, RendersWhatJinja2InTransformersRenders) {
  ExpectAllAsRecorded(GoldenJson("text/renderings.json"));
}

TEST_F(ChatTemplateTest, MarksWhatTheAssistantGenerates) {
  const auto chat_template = Template(
      "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %};{% endfor %}");
  EXPECT_TRUE(chat_template->has_generation());
  const auto chat =
      chat_template->Render(R"([{"role":"a","content":"é"},{"role":"a","content":""}])", false);
  ASSERT_TRUE(chat.ok()) << chat.status();
  EXPECT_EQ(chat->text, "é;;");
  EXPECT_THAT(chat->generated, ElementsAre(ByteRange{0, 2}, ByteRange{3, 3}));
}

TEST_F(ChatTemplateTest, ASyntaxErrorNamesFileAndLine) {
  const auto chat_template = ChatTemplate::Create("a\n{% for %}", {}, "m/chat_template.jinja");
  EXPECT_EQ(ReasonOf(chat_template.status()), Reason::kTextInvalid);
  EXPECT_THAT(std::string(chat_template.status().message()),
              HasSubstr("the chat template of m/chat_template.jinja cannot be read: "));
  EXPECT_THAT(std::string(chat_template.status().message()), HasSubstr("(line 2)"));
}

TEST_F(ChatTemplateTest, TheTemplatesOwnErrorIsKept) {
  const auto chat = Template("{{ raise_exception('no system role') }}")->Render("[]", false);
  EXPECT_EQ(ReasonOf(chat.status()), Reason::kTextInvalid);
  EXPECT_EQ(chat.status().message(),
            "the chat template of m/chat_template.jinja refuses the messages: no system role");
}

TEST_F(ChatTemplateTest, AnEndlessTemplateEndsWithAnError) {
  const auto chat =
      Template("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}")
          ->Render("[]", false);
  EXPECT_THAT(std::string(chat.status().message()), HasSubstr("fuel"));
}

TEST_F(ChatTemplateTest, MessagesThatAreNoListAreRefused) {
  const auto chat = Template("x")->Render("{}", false);
  EXPECT_EQ(chat.status().message(), "must be a JSON list of messages");
  EXPECT_FALSE(Template("x")->Render("[", false).ok());
}

TEST_F(ChatTemplateTest, VariablesWinOverSpecialTokens) {
  const auto chat_template = Template("{{ bos_token }}{{ tools is none }}");
  EXPECT_EQ(chat_template->Render("[]", false)->text, "<s>True");
  EXPECT_EQ(chat_template->RenderWith("[]", false, R"({"bos_token":"B","tools":[]})", 0)->text,
            "BFalse");
  EXPECT_THAT(chat_template->Render("[]", false)->generated, IsEmpty());
}

}  // namespace
}  // namespace traind
