#include <utility>

#include "absl/strings/str_cat.h"
#include "common/modelspec/gguf_file.h"
#include "common/status/errors.h"
#include "worker/text/tokenizer_files.h"

namespace traind {
namespace {

constexpr char kModel[] = "tokenizer.ggml.model";
constexpr char kPre[] = "tokenizer.ggml.pre";
constexpr char kTokens[] = "tokenizer.ggml.tokens";
constexpr char kMerges[] = "tokenizer.ggml.merges";
constexpr char kTokenTypes[] = "tokenizer.ggml.token_type";
constexpr char kBos[] = "tokenizer.ggml.bos_token_id";
constexpr char kEos[] = "tokenizer.ggml.eos_token_id";
constexpr char kPad[] = "tokenizer.ggml.padding_token_id";
constexpr char kUnk[] = "tokenizer.ggml.unknown_token_id";
constexpr char kAddBos[] = "tokenizer.ggml.add_bos_token";
constexpr char kChatTemplate[] = "tokenizer.chat_template";

absl::StatusOr<GgufVocabulary> ReadVocabulary(const GgufHeader& header) {
  GgufVocabulary vocabulary;
  TRAIND_ASSIGN_OR_RETURN(vocabulary.model, header.GetString(kModel));
  TRAIND_ASSIGN_OR_RETURN(vocabulary.tokens, header.GetStrings(kTokens));
  TRAIND_ASSIGN_OR_RETURN(vocabulary.merges, header.GetStrings(kMerges));
  if (header.Has(kPre)) {
    TRAIND_ASSIGN_OR_RETURN(vocabulary.pre, header.GetString(kPre));
  }
  if (header.Has(kTokenTypes)) {
    TRAIND_ASSIGN_OR_RETURN(const std::vector<int64_t> types, header.GetInts(kTokenTypes));
    vocabulary.token_types.assign(types.begin(), types.end());
  }
  return vocabulary;
}

absl::StatusOr<SpecialToken> ReadSpecialToken(const GgufHeader& header, const char* key,
                                              const std::vector<std::string>& tokens) {
  if (!header.Has(key)) return SpecialToken();
  TRAIND_ASSIGN_OR_RETURN(const int64_t id, header.GetInt(key));
  if (id < 0 || id >= static_cast<int64_t>(tokens.size())) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kModelInvalid,
                 absl::StrCat(header.path(), ": ", key, " is ", id, ", but there are ",
                              tokens.size(), " tokens"),
                 {{"file", header.path()}});
  }
  return SpecialToken{static_cast<int32_t>(id), tokens[static_cast<size_t>(id)]};
}

}  // namespace

absl::StatusOr<TextModel> LoadTextModelFromGguf(const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  const GgufHeader& header = file.header();
  TextModel model;
  model.path = path;
  TRAIND_ASSIGN_OR_RETURN(GgufVocabulary vocabulary, ReadVocabulary(header));
  TRAIND_ASSIGN_OR_RETURN(model.bos, ReadSpecialToken(header, kBos, vocabulary.tokens));
  TRAIND_ASSIGN_OR_RETURN(model.eos, ReadSpecialToken(header, kEos, vocabulary.tokens));
  TRAIND_ASSIGN_OR_RETURN(model.pad, ReadSpecialToken(header, kPad, vocabulary.tokens));
  TRAIND_ASSIGN_OR_RETURN(model.unk, ReadSpecialToken(header, kUnk, vocabulary.tokens));
  if (header.Has(kAddBos)) {
    TRAIND_ASSIGN_OR_RETURN(model.add_bos, header.GetBool(kAddBos));
  }
  if (model.add_bos && model.bos.id >= 0) vocabulary.bos_id = model.bos.id;
  TRAIND_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::FromGguf(vocabulary, path));
  if (header.Has(kChatTemplate)) {
    TRAIND_ASSIGN_OR_RETURN(const std::string source, header.GetString(kChatTemplate));
    TRAIND_RETURN_IF_ERROR(SetChatTemplate(source, path, model));
  }
  return model;
}

}  // namespace traind
