// The real SmolLM2 tokenizer, from the GGUF file that `make bootstrap` fetches.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/bytetok.h"
#include "tests/support/smollm2_path.h"
#include "worker/text/text_model.h"

namespace traind {
namespace {

using testing::ElementsAre;
using Json = nlohmann::ordered_json;

TEST(SmolLm2TextTest, EncodesAsTransformersDoes) {
  const Json golden = GoldenJson("text/smollm2_ids.json");
  ASSERT_GE(golden["texts"].size(), 10u);
  const auto model = LoadTextModel(SmolLm2Path());
  ASSERT_TRUE(model.ok()) << model.status() << "\n`make bootstrap` fetches the file";
  EXPECT_EQ(model->tokenizer->vocab_size(), 49152);
  EXPECT_EQ(model->bos.id, 1);
  EXPECT_EQ(model->eos.id, 2);
  EXPECT_FALSE(model->add_bos);
  EXPECT_THAT(model->StopIds(), ElementsAre(2));
  for (const Json& text : golden["texts"]) {
    const auto ids = model->Encode(text["text"].get<std::string>());
    ASSERT_TRUE(ids.ok()) << ids.status();
    EXPECT_EQ(*ids, text["ids"].get<std::vector<int32_t>>()) << text["text"];
    EXPECT_EQ(*model->tokenizer->Decode(*ids, false), text["text"].get<std::string>());
  }
  const std::string folder = NewTestFolder("out");
  ASSERT_TRUE(WriteTokenizerFiles(*model, folder).ok());
  const auto again = LoadTextModel(folder);
  ASSERT_TRUE(again.ok()) << again.status();
  for (const TextModel* loaded : {&*model, &*again}) {
    EXPECT_EQ(*loaded->EncodePrompt(golden["messages"].dump()),
              golden["prompt_ids"].get<std::vector<int32_t>>());
  }
}

}  // namespace
}  // namespace traind
