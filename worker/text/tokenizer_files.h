// The tokenizer files of a Hugging Face folder. Only for .cc files of this folder.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "worker/text/text_model.h"

namespace traind {

// Reads tokenizer.json, tokenizer_config.json and chat_template.jinja of a folder.
absl::StatusOr<TextModel> LoadTextModelFromFolder(const std::string& directory);

// Reads `tokenizer.*` of a GGUF file.
absl::StatusOr<TextModel> LoadTextModelFromGguf(const std::string& path);

// Creates the template with the special tokens of `model`, which must be set before.
absl::Status SetChatTemplate(absl::string_view source, absl::string_view file, TextModel& model);

}  // namespace traind
