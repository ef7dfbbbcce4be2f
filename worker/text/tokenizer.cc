#include "worker/text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "nlohmann/json.hpp"
#include "worker/text/hftext_owned.h"

namespace traind {
namespace {

absl::Status ModelInvalid(absl::string_view file, absl::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kModelInvalid,
               absl::StrCat("the tokenizer of ", file, " cannot be used: ", why), {{"file", file}});
}

absl::Status TextInvalid(absl::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kTextInvalid,
               absl::StrCat("the text cannot be tokenized: ", why));
}

}  // namespace

Tokenizer::Tokenizer(hftext_tokenizer* handle, std::vector<int32_t> special_ids)
    : handle_(handle),
      vocab_size_(static_cast<int64_t>(hftext_tokenizer_vocab_size(handle))),
      special_ids_(std::move(special_ids)) {}

Tokenizer::~Tokenizer() { hftext_tokenizer_free(handle_); }

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromJson(absl::string_view json,
                                                               absl::string_view file) {
  hftext_tokenizer* handle = nullptr;
  HftextText error;
  if (hftext_tokenizer_from_json(json.data(), json.size(), &handle, error.out()) != HFTEXT_OK) {
    return ModelInvalid(file, error.str());
  }
  return Own(handle, file);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(const GgufVocabulary& vocabulary,
                                                               absl::string_view file) {
  const nlohmann::json json = {
      {"model", vocabulary.model},
      {"pre", vocabulary.pre},
      {"tokens", vocabulary.tokens},
      {"merges", vocabulary.merges},
      {"token_types", vocabulary.token_types},
      {"bos_id", vocabulary.bos_id ? nlohmann::json(*vocabulary.bos_id) : nlohmann::json()}};
  // Bytes that are no UTF-8 are replaced and then miss in the merges, which is an error there.
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  hftext_tokenizer* handle = nullptr;
  HftextText error;
  if (hftext_tokenizer_from_gguf(text.data(), text.size(), &handle, error.out()) != HFTEXT_OK) {
    return ModelInvalid(file, error.str());
  }
  return Own(handle, file);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Own(hftext_tokenizer* handle,
                                                          absl::string_view file) {
  HftextIds special_ids;
  HftextText error;
  if (hftext_tokenizer_special_ids(handle, special_ids.out(), error.out()) != HFTEXT_OK) {
    hftext_tokenizer_free(handle);
    return ModelInvalid(file, error.str());
  }
  return std::unique_ptr<Tokenizer>(new Tokenizer(handle, special_ids.ids()));
}

absl::StatusOr<std::vector<int32_t>> Tokenizer::Encode(absl::string_view text,
                                                       bool add_special_tokens) const {
  HftextIds ids;
  HftextText error;
  if (hftext_tokenizer_encode(handle_, text.data(), text.size(), add_special_tokens ? 1 : 0,
                              ids.out(), nullptr, error.out()) != HFTEXT_OK) {
    return TextInvalid(error.str());
  }
  return ids.ids();
}

absl::StatusOr<Encoding> Tokenizer::EncodeWithOffsets(absl::string_view text,
                                                      bool add_special_tokens) const {
  HftextIds ids;
  HftextRanges offsets;
  HftextText error;
  if (hftext_tokenizer_encode(handle_, text.data(), text.size(), add_special_tokens ? 1 : 0,
                              ids.out(), offsets.out(), error.out()) != HFTEXT_OK) {
    return TextInvalid(error.str());
  }
  return Encoding{ids.ids(), offsets.ranges()};
}

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const int32_t> ids,
                                              bool skip_special_tokens) const {
  const std::vector<uint32_t> unsigned_ids(ids.begin(), ids.end());
  HftextText text;
  HftextText error;
  if (hftext_tokenizer_decode(handle_, unsigned_ids.data(), unsigned_ids.size(),
                              skip_special_tokens ? 1 : 0, text.out(), error.out()) != HFTEXT_OK) {
    return TextInvalid(error.str());
  }
  return text.str();
}

std::optional<int32_t> Tokenizer::TokenToId(absl::string_view token) const {
  const int64_t id = hftext_tokenizer_token_to_id(handle_, token.data(), token.size());
  if (id < 0) return std::nullopt;
  return static_cast<int32_t>(id);
}

std::optional<std::string> Tokenizer::IdToToken(int32_t id) const {
  HftextText token;
  if (id < 0 ||
      hftext_tokenizer_id_to_token(handle_, static_cast<uint32_t>(id), token.out()) != HFTEXT_OK) {
    return std::nullopt;
  }
  return token.str();
}

bool Tokenizer::IsSpecial(int32_t id) const {
  return std::binary_search(special_ids_.begin(), special_ids_.end(), id);
}

absl::StatusOr<std::string> Tokenizer::ToJson() const {
  HftextText json;
  HftextText error;
  if (hftext_tokenizer_to_json(handle_, json.out(), error.out()) != HFTEXT_OK) {
    return Error(absl::StatusCode::kInternal, Reason::kBug,
                 absl::StrCat("the tokenizer cannot be written: ", error.str()));
  }
  return json.str();
}

}  // namespace traind
