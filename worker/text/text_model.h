// What a base model brings to turn text into tokens: tokenizer, special tokens, chat template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/chat_template.h"
#include "worker/text/tokenizer.h"

namespace traind {

// A token that the model gives a meaning.
struct SpecialToken {
  int32_t id = -1;  // -1: the model has none.
  std::string text;
};

// Thread-safe after loading.
struct TextModel {
  std::string path;  // The folder or file it came from; named in errors.
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatTemplate> chat_template;  // Null: the model has none.
  SpecialToken bos;
  SpecialToken eos;
  SpecialToken pad;
  SpecialToken unk;
  // Texts start with BOS: `add_bos_token`, or what the post-processor of tokenizer.json does.
  bool add_bos = false;
  int64_t model_max_length = 0;  // 0: not stated.

  // Tokens of `text` with exactly one BOS at the start if the model wants one: none is added where
  // the text (for instance a rendered chat) already starts with it. No EOS is added.
  // Offsets are those of `text`; an added BOS has [0, 0).
  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text) const;
  absl::StatusOr<Encoding> EncodeWithOffsets(absl::string_view text) const;

  // The prompt for the assistant's answer to `messages_json`. Errors: TEXT_INVALID, also if the
  // model has no chat template.
  absl::StatusOr<std::vector<int32_t>> EncodePrompt(absl::string_view messages_json) const;

  // Ids that end an answer: EOS and the token that ends an assistant turn of the chat template.
  std::vector<int32_t> StopIds() const;

 private:
  bool NeedsBos(const std::vector<int32_t>& ids) const;
};

// Reads a Hugging Face folder (tokenizer.json, tokenizer_config.json, chat_template.jinja, which
// wins over tokenizer_config.json's) or a GGUF file. Errors: MODEL_NOT_FOUND, MODEL_INVALID,
// TEXT_INVALID for a broken template; all name the file.
absl::StatusOr<TextModel> LoadTextModel(const std::string& path);

// Writes tokenizer.json, tokenizer_config.json and, if there is one, chat_template.jinja into an
// existing folder, so that Transformers' AutoTokenizer loads it. Errors: OUTPUT_FAILED, DISK_FULL.
absl::Status WriteTokenizerFiles(const TextModel& model, const std::string& directory);

}  // namespace traind
