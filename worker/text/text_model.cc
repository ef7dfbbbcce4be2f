#include "worker/text/text_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "worker/text/tokenizer_files.h"

namespace traind {
namespace {

// A text that no template writes by itself: where it shows up, the answer would be.
constexpr absl::string_view kProbe = "\xF3\xB0\x82\xA0";  // U+F00A0, private use.

// The first special token behind the answer to a probing conversation; -1 if there is none.
int32_t TurnTerminator(const TextModel& model) {
  const std::string messages = absl::StrCat(
      R"([{"role":"user","content":"a"},{"role":"assistant","content":")", kProbe, "\"}]");
  const auto chat = model.chat_template->Render(messages, /*add_generation_prompt=*/false);
  if (!chat.ok()) return -1;
  const size_t answer = chat->text.find(std::string(kProbe));
  if (answer == std::string::npos) return -1;
  const auto tail = model.tokenizer->Encode(chat->text.substr(answer + kProbe.size()),
                                            /*add_special_tokens=*/false);
  if (!tail.ok()) return -1;
  const auto found = std::find_if(tail->begin(), tail->end(),
                                  [&](int32_t id) { return model.tokenizer->IsSpecial(id); });
  return found == tail->end() ? -1 : *found;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> TextModel::Encode(absl::string_view text) const {
  TRAIND_ASSIGN_OR_RETURN(std::vector<int32_t> ids, tokenizer->Encode(text, false));
  if (NeedsBos(ids)) ids.insert(ids.begin(), bos.id);
  return ids;
}

absl::StatusOr<Encoding> TextModel::EncodeWithOffsets(absl::string_view text) const {
  TRAIND_ASSIGN_OR_RETURN(Encoding encoding, tokenizer->EncodeWithOffsets(text, false));
  if (NeedsBos(encoding.ids)) {
    encoding.ids.insert(encoding.ids.begin(), bos.id);
    encoding.offsets.insert(encoding.offsets.begin(), ByteRange{});
  }
  return encoding;
}

bool TextModel::NeedsBos(const std::vector<int32_t>& ids) const {
  return add_bos && bos.id >= 0 && (ids.empty() || ids.front() != bos.id);
}

absl::StatusOr<std::vector<int32_t>> TextModel::EncodePrompt(
    absl::string_view messages_json) const {
  if (chat_template == nullptr) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kTextInvalid,
                 absl::StrCat(path, " has no chat template, so that messages cannot be rendered"),
                 {{"file", path}});
  }
  TRAIND_ASSIGN_OR_RETURN(const RenderedChat chat, chat_template->Render(messages_json, true));
  return Encode(chat.text);
}

std::vector<int32_t> TextModel::StopIds() const {
  std::vector<int32_t> ids;
  if (eos.id >= 0) ids.push_back(eos.id);
  const int32_t terminator = chat_template == nullptr ? -1 : TurnTerminator(*this);
  if (terminator >= 0 && terminator != eos.id) ids.push_back(terminator);
  return ids;
}

absl::StatusOr<TextModel> LoadTextModel(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return Error(absl::StatusCode::kNotFound, Reason::kModelNotFound,
                 absl::StrCat("the model ", path, " does not exist or cannot be reached"),
                 {{"file", path}});
  }
  return std::filesystem::is_directory(status) ? LoadTextModelFromFolder(path)
                                               : LoadTextModelFromGguf(path);
}

absl::Status SetChatTemplate(absl::string_view source, absl::string_view file, TextModel& model) {
  std::map<std::string, std::string> special_tokens;
  for (const auto& [name, token] : {std::pair{"bos_token", &model.bos},
                                    {"eos_token", &model.eos},
                                    {"pad_token", &model.pad},
                                    {"unk_token", &model.unk}}) {
    if (token->id >= 0) special_tokens[name] = token->text;
  }
  TRAIND_ASSIGN_OR_RETURN(model.chat_template, ChatTemplate::Create(source, special_tokens, file));
  return absl::OkStatus();
}

}  // namespace traind
