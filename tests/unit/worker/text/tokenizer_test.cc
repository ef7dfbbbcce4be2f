#include "worker/text/tokenizer.h"

#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/bytetok.h"
#include "worker/text/hftext_owned.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GgufVocabulary TinyVocabulary() {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "smollm";
  vocabulary.tokens = {"<s>", "a", "b", "ab", "Ġ", "Ġab", "1"};
  vocabulary.merges = {"a b", "Ġ ab"};
  vocabulary.token_types = {3, 1, 1, 1, 1, 1, 1};
  return vocabulary;
}

TEST(TokenizerTest, EncodesBytesAndNamesOfSpecialTokens) {
  const TextModel model = Bytetok();
  EXPECT_THAT(*model.tokenizer->Encode("Hi<eos>", false), ElementsAre(82, 115, 2));
  EXPECT_EQ(model.tokenizer->vocab_size(), 266);
  EXPECT_EQ(model.tokenizer->TokenToId("<|im_end|>"), 5);
  EXPECT_EQ(model.tokenizer->TokenToId("no such token"), std::nullopt);
  EXPECT_EQ(model.tokenizer->IdToToken(5), "<|im_end|>");
  EXPECT_EQ(model.tokenizer->IdToToken(266), std::nullopt);
  EXPECT_EQ(model.tokenizer->IdToToken(-1), std::nullopt);
}

TEST(TokenizerTest, OffsetsAreBytesAndPartsOfOneCharacterShareIt) {
  const TextModel model = Bytetok();
  const auto encoding = model.tokenizer->EncodeWithOffsets("aé<eos>b", false);
  ASSERT_TRUE(encoding.ok()) << encoding.status();
  EXPECT_THAT(encoding->ids, ElementsAre(107, 205, 179, 2, 108));
  EXPECT_THAT(encoding->offsets, ElementsAre(ByteRange{0, 1}, ByteRange{1, 3}, ByteRange{1, 3},
                                             ByteRange{3, 8}, ByteRange{8, 9}));
}

TEST(TokenizerTest, AddedTokensThatAreNotSpecialStayOrdinary) {
  const TextModel model = Bytetok();
  EXPECT_TRUE(model.tokenizer->IsSpecial(7));
  EXPECT_FALSE(model.tokenizer->IsSpecial(8)) << "<think> has special: false";
  EXPECT_FALSE(model.tokenizer->IsSpecial(107));
}

TEST(TokenizerTest, DecodesWithAndWithoutSpecialTokens) {
  const TextModel model = Bytetok();
  const std::vector<int32_t> ids = {1, 82, 115, 2, 9999};
  EXPECT_EQ(*model.tokenizer->Decode(ids, false), "<bos>Hi<eos>");
  EXPECT_EQ(*model.tokenizer->Decode(ids, true), "Hi");
  EXPECT_EQ(*model.tokenizer->Decode({}, true), "");
}

TEST(TokenizerTest, TextThatIsNotUtf8IsAnError) {
  const TextModel model = Bytetok();
  const auto ids = model.tokenizer->Encode("caf\xFF", false);
  EXPECT_EQ(ReasonOf(ids.status()), Reason::kTextInvalid);
  EXPECT_THAT(std::string(ids.status().message()), HasSubstr("utf-8"));
}

TEST(TokenizerTest, BrokenJsonNamesTheFile) {
  const auto tokenizer = Tokenizer::FromJson("{", "/models/x/tokenizer.json");
  EXPECT_EQ(ReasonOf(tokenizer.status()), Reason::kModelInvalid);
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("/models/x/tokenizer.json"));
  EXPECT_EQ(MetadataOf(tokenizer.status(), "file"), "/models/x/tokenizer.json");
}

TEST(TokenizerTest, TruncationAndPaddingOfTheFileAreSwitchedOff) {
  nlohmann::ordered_json json = GoldenJson("bytetok/tokenizer.json");
  json["truncation"] = {
      {"max_length", 2}, {"stride", 0}, {"strategy", "LongestFirst"}, {"direction", "Right"}};
  json["padding"] = {
      {"strategy", {{"Fixed", 8}}}, {"direction", "Right"}, {"pad_id", 0},
      {"pad_type_id", 0},           {"pad_token", "<pad>"}, {"pad_to_multiple_of", nullptr}};
  const auto tokenizer = Tokenizer::FromJson(json.dump(), "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("abc", false), ElementsAre(107, 108, 109));
}

TEST(TokenizerTest, GgufVocabularyIsByteLevelBpe) {
  GgufVocabulary vocabulary = TinyVocabulary();
  vocabulary.bos_id = 0;
  const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_THAT(*(*tokenizer)->Encode("ab ab11", true), ElementsAre(0, 3, 5, 6, 6));
  EXPECT_THAT(*(*tokenizer)->Encode("ab", false), ElementsAre(3));
  const auto again = Tokenizer::FromJson(*(*tokenizer)->ToJson(), "tokenizer.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(*(*again)->Encode("ab ab11", true), ElementsAre(0, 3, 5, 6, 6));
}

TEST(TokenizerTest, GgufPreTokenizerThatIsNotKnownIsNamed) {
  GgufVocabulary vocabulary = TinyVocabulary();
  vocabulary.pre = "tekken";
  const auto tokenizer = Tokenizer::FromGguf(vocabulary, "m.gguf");
  EXPECT_EQ(ReasonOf(tokenizer.status()), Reason::kModelInvalid);
  EXPECT_EQ(tokenizer.status().message(),
            "the tokenizer of m.gguf cannot be used: tokenizer.ggml.pre is \"tekken\", but only "
            "default, gpt-2, smollm, llama-bpe, qwen2 are supported");
}

TEST(TokenizerTest, APanicOfTheLibraryIsAnError) {
  HftextText error;
  EXPECT_EQ(hftext_panic_for_test(error.out()), HFTEXT_PANICKED);
  EXPECT_THAT(error.str(), HasSubstr("internal error: asked for at "));
}

}  // namespace
}  // namespace traind
