// Text to token ids and back, exactly as Hugging Face `tokenizers` does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

struct hftext_tokenizer;

namespace traind {

// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const ByteRange&) const = default;
};

// The tokens of one text.
struct Encoding {
  std::vector<int32_t> ids;
  // Parallel to ids: where in the text the token comes from. Tokens that share one character all
  // have that character's whole range.
  std::vector<ByteRange> offsets;
};

// A byte-level BPE vocabulary as GGUF stores it (`tokenizer.ggml.*`).
struct GgufVocabulary {
  std::string model;  // `gpt2`; no other is supported.
  std::string pre;    // The pre-tokenizer, such as `smollm` or `llama-bpe`.
  std::vector<std::string> tokens;
  std::vector<std::string> merges;   // `left right`.
  std::vector<int32_t> token_types;  // 3: control, 4: user-defined. Parallel to tokens, or empty.
  std::optional<int32_t> bos_id;     // Put before every text when special tokens are asked for.
};

// One vocabulary with its rules. Thread-safe. Truncation and padding that a tokenizer.json bakes
// in are switched off: the caller decides about both.
class Tokenizer {
 public:
  // Reads the text of a tokenizer.json; `file` is named in errors. Errors: MODEL_INVALID.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromJson(absl::string_view json,
                                                             absl::string_view file);

  // Builds the tokenizer that a GGUF file describes. Errors: MODEL_INVALID, which names a
  // pre-tokenizer that is not supported and those that are.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> FromGguf(const GgufVocabulary& vocabulary,
                                                             absl::string_view file);

  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;
  ~Tokenizer();

  // `add_special_tokens`: let the post-processor add BOS, EOS and the like. Names of special
  // tokens inside `text` become these tokens in either case, as in Transformers. Errors:
  // TEXT_INVALID if `text` is not UTF-8.
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text,
                                              bool add_special_tokens) const;
  absl::StatusOr<Encoding> EncodeWithOffsets(absl::string_view text, bool add_special_tokens) const;

  // Ids outside the vocabulary are left out, as in Transformers.
  absl::StatusOr<std::string> Decode(absl::Span<const int32_t> ids, bool skip_special_tokens) const;

  std::optional<int32_t> TokenToId(absl::string_view token) const;
  std::optional<std::string> IdToToken(int32_t id) const;

  // True for an added token with `special: true`.
  bool IsSpecial(int32_t id) const;

  // Tokens of the vocabulary, added ones included.
  int64_t vocab_size() const { return vocab_size_; }

  // The text of a tokenizer.json that gives this tokenizer again.
  absl::StatusOr<std::string> ToJson() const;

 private:
  Tokenizer(hftext_tokenizer* handle, std::vector<int32_t> special_ids);
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Own(hftext_tokenizer* handle,
                                                        absl::string_view file);

  hftext_tokenizer* handle_;
  int64_t vocab_size_;
  std::vector<int32_t> special_ids_;  // Sorted.
};

}  // namespace traind
