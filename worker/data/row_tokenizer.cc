#include "worker/data/row_tokenizer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/errors.h"
#include "worker/data/assistant_turns.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

absl::Status Invalid(absl::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kDatasetInvalid, why);
}

absl::StatusOr<Json> Field(const Json& row, const char* name) {
  const auto found = row.find(name);
  if (found == row.end()) return Invalid(absl::StrCat("the field `", name, "` is missing"));
  return *found;
}

absl::Status CheckMessage(const Json& message, const std::string& path) {
  if (!message.is_object()) {
    return Invalid(absl::StrCat("`", path, "` must be an object with role and content"));
  }
  if (!message.contains("role") || !message["role"].is_string()) {
    return Invalid(absl::StrCat("`", path, ".role` must be a text such as user or assistant"));
  }
  const Json content = message.value("content", Json());
  if (!content.is_string() && !content.is_null() && !content.is_array()) {
    return Invalid(
        absl::StrCat("`", path, ".content` must be a text, but is ", content.type_name()));
  }
  return absl::OkStatus();
}

absl::Status CheckMessages(const Json& messages, const char* name) {
  if (!messages.is_array() || messages.empty()) {
    return Invalid(absl::StrCat("`", name, "` must be a list of at least one message"));
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    TRAIND_RETURN_IF_ERROR(CheckMessage(messages[i], absl::StrCat(name, "[", i, "]")));
  }
  return absl::OkStatus();
}

// What a template gets beside the messages.
Json VariablesOf(const Json& row) {
  Json variables = Json::object();
  if (row.contains("tools") && !row["tools"].is_null()) variables["tools"] = row["tools"];
  return variables;
}

// The row of `ids` whose first `masked` tokens are not trained.
TokenizedRow RowOf(std::vector<int32_t> ids, size_t masked) {
  TokenizedRow row;
  row.example.supervised.assign(ids.size(), 1);
  std::fill_n(row.example.supervised.begin(), std::min(masked, ids.size()), uint8_t{0});
  row.example.input_ids = std::move(ids);
  return row;
}

bool BeginsWith(const std::vector<int32_t>& ids, const std::vector<int32_t>& prefix) {
  return prefix.size() <= ids.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
}

}  // namespace

absl::StatusOr<RowFormat> DetectRowFormat(const Json& row) {
  if (row.contains("messages")) return RowFormat::kMessages;
  if (row.contains("prompt") && row.contains("completion")) return RowFormat::kPromptCompletion;
  if (row.contains("text")) return RowFormat::kText;
  std::vector<std::string> fields;
  for (const auto& [name, value] : row.items()) fields.push_back(name);
  return Invalid(
      absl::StrCat("the row has neither `messages`, nor `prompt` and `completion`, nor "
                   "`text`; its fields are: ",
                   fields.empty() ? "none" : absl::StrJoin(fields, ", ")));
}

absl::StatusOr<TokenizedRow> RowTokenizer::Tokenize(const Json& row, RowFormat format) const {
  switch (format) {
    case RowFormat::kPromptCompletion:
      return PromptCompletion(row);
    case RowFormat::kMessages:
      return Messages(row);
    case RowFormat::kText:
      return Text(row);
    case RowFormat::kAuto:
      break;
  }
  return Error(absl::StatusCode::kInternal, Reason::kBug, "the format of a row is not known");
}

absl::StatusOr<TokenizedRow> RowTokenizer::PromptCompletion(const Json& row) const {
  TRAIND_ASSIGN_OR_RETURN(const Json prompt, Field(row, "prompt"));
  TRAIND_ASSIGN_OR_RETURN(const Json completion, Field(row, "completion"));
  std::string prompt_text;
  std::string full_text;
  if (prompt.is_string() && completion.is_string()) {
    prompt_text = prompt.get<std::string>();
    full_text = prompt_text + WithEos(completion.get<std::string>());
  } else if (prompt.is_array() && completion.is_array()) {
    TRAIND_RETURN_IF_ERROR(RequireChatTemplate());
    TRAIND_RETURN_IF_ERROR(CheckMessages(prompt, "prompt"));
    TRAIND_RETURN_IF_ERROR(CheckMessages(completion, "completion"));
    Json messages = prompt;
    messages.insert(messages.end(), completion.begin(), completion.end());
    const std::string variables = VariablesOf(row).dump();
    const ChatTemplate& chat_template = *model_.chat_template;
    TRAIND_ASSIGN_OR_RETURN(RenderedChat before,
                            chat_template.RenderWith(prompt.dump(), true, variables, -1));
    TRAIND_ASSIGN_OR_RETURN(RenderedChat full,
                            chat_template.RenderWith(messages.dump(), false, variables, -1));
    prompt_text = std::move(before.text);
    full_text = std::move(full.text);
  } else {
    return Invalid(
        absl::StrCat("`prompt` and `completion` must both be texts or both be lists of "
                     "messages, but are ",
                     prompt.type_name(), " and ", completion.type_name()));
  }
  TRAIND_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt_ids, model_.Encode(prompt_text));
  TRAIND_ASSIGN_OR_RETURN(std::vector<int32_t> ids, model_.Encode(full_text));
  const bool is_prefix = BeginsWith(ids, prompt_ids);
  const bool no_stop = !EndsWithStop(ids);
  TokenizedRow result = RowOf(std::move(ids), loss_on_ == LossOn::kAll ? 0 : prompt_ids.size());
  result.prompt_is_no_prefix = !is_prefix;
  result.turn_without_stop_token = no_stop;
  return result;
}

absl::StatusOr<TokenizedRow> RowTokenizer::Messages(const Json& row) const {
  TRAIND_ASSIGN_OR_RETURN(const Json messages, Field(row, "messages"));
  TRAIND_RETURN_IF_ERROR(CheckMessages(messages, "messages"));
  TRAIND_RETURN_IF_ERROR(RequireChatTemplate());
  const Json variables = VariablesOf(row);
  if (loss_on_ == LossOn::kAll) {
    TRAIND_ASSIGN_OR_RETURN(
        const RenderedChat chat,
        model_.chat_template->RenderWith(messages.dump(), false, variables.dump(), -1));
    TRAIND_ASSIGN_OR_RETURN(std::vector<int32_t> ids, model_.Encode(chat.text));
    return RowOf(std::move(ids), 0);
  }
  TRAIND_ASSIGN_OR_RETURN(TokenizedChat chat, TokenizeChat(model_, messages, variables));
  TokenizedRow result;
  result.example = {std::move(chat.ids), std::move(chat.supervised)};
  result.turn_without_stop_token = chat.turn_without_stop_token;
  return result;
}

absl::StatusOr<TokenizedRow> RowTokenizer::Text(const Json& row) const {
  TRAIND_ASSIGN_OR_RETURN(const Json text, Field(row, "text"));
  if (!text.is_string()) {
    return Invalid(absl::StrCat("`text` must be a text, but is ", text.type_name()));
  }
  if (loss_on_ == LossOn::kCompletion) {
    return Invalid("text rows have no completion to train on; set loss_on to all");
  }
  TRAIND_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                          model_.Encode(WithEos(text.get<std::string>())));
  const bool no_stop = !EndsWithStop(ids);
  TokenizedRow result = RowOf(std::move(ids), 0);
  result.turn_without_stop_token = no_stop;
  return result;
}

absl::Status RowTokenizer::RequireChatTemplate() const {
  if (model_.chat_template != nullptr) return absl::OkStatus();
  return Invalid(absl::StrCat("the row has messages, but the model ", model_.path,
                              " has no chat template; give prompt and completion as texts"));
}

std::string RowTokenizer::WithEos(const std::string& text) const {
  if (model_.eos.id < 0 || absl::EndsWith(text, model_.eos.text)) return text;
  return text + model_.eos.text;
}

bool RowTokenizer::EndsWithStop(const std::vector<int32_t>& ids) const {
  for (auto id = ids.rbegin(); id != ids.rend() && id - ids.rbegin() < 2; ++id) {
    // A rendered chat may end with a line break behind the token.
    if (*id == model_.eos.id || model_.tokenizer->IsSpecial(*id)) return true;
  }
  return false;
}

}  // namespace traind
