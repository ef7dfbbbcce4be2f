#include "worker/text/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "nlohmann/json.hpp"
#include "worker/text/hftext_owned.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;  // `tojson` in a template shows the order of keys.

constexpr int64_t kClock = -1;

absl::Status TemplateError(absl::string_view file, absl::string_view what, absl::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kTextInvalid,
               absl::StrCat("the chat template of ", file, " ", what, ": ", why), {{"file", file}});
}

// Refuses what is no JSON of the type that `is_right` tells.
absl::StatusOr<Json> ParseAs(absl::string_view text, bool (Json::*is_right)() const noexcept,
                             absl::string_view what) {
  Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!(json.*is_right)()) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kTextInvalid,
                 absl::StrCat("must be ", what));
  }
  return json;
}

// A message's reasoning under both names that templates read, as Transformers passes it on.
void AliasReasoning(Json& message) {
  if (!message.is_object()) return;
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto reasoning = message.find(name);
    if (reasoning == message.end() || reasoning->is_null()) continue;
    Json aliased = {{"thinking", *reasoning}};
    aliased.update(message);
    aliased["reasoning_content"] = *reasoning;
    message = std::move(aliased);
    return;
  }
}

}  // namespace

ChatTemplate::ChatTemplate(hftext_template* handle, absl::string_view source,
                           const std::map<std::string, std::string>& special_tokens,
                           absl::string_view file)
    : handle_(handle), source_(source), special_tokens_(special_tokens), file_(file) {}

ChatTemplate::~ChatTemplate() { hftext_template_free(handle_); }

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(
    absl::string_view source, const std::map<std::string, std::string>& special_tokens,
    absl::string_view file) {
  hftext_template* handle = nullptr;
  HftextText error;
  if (hftext_template_new(source.data(), source.size(), &handle, error.out()) != HFTEXT_OK) {
    return TemplateError(file, "cannot be read", error.str());
  }
  return std::unique_ptr<ChatTemplate>(new ChatTemplate(handle, source, special_tokens, file));
}

absl::StatusOr<RenderedChat> ChatTemplate::Render(absl::string_view messages_json,
                                                  bool add_generation_prompt) const {
  return RenderWith(messages_json, add_generation_prompt, "{}", kClock);
}

absl::StatusOr<RenderedChat> ChatTemplate::RenderWith(absl::string_view messages_json,
                                                      bool add_generation_prompt,
                                                      absl::string_view variables_json,
                                                      int64_t unix_seconds) const {
  TRAIND_ASSIGN_OR_RETURN(Json messages,
                          ParseAs(messages_json, &Json::is_array, "a JSON list of messages"));
  TRAIND_ASSIGN_OR_RETURN(Json variables,
                          ParseAs(variables_json, &Json::is_object, "a JSON object"));
  for (Json& message : messages) AliasReasoning(message);
  variables["messages"] = std::move(messages);
  variables["add_generation_prompt"] = add_generation_prompt;
  for (const auto& [name, token] : special_tokens_) variables.emplace(name, token);
  // Transformers always passes these two, so that `tools is defined` holds in its templates.
  for (const char* name : {"tools", "documents"}) variables.emplace(name, nullptr);
  const std::string text = variables.dump(-1, ' ', false, Json::error_handler_t::replace);

  HftextText rendered;
  HftextRanges spans;
  HftextText error;
  const int code = hftext_template_render(handle_, text.data(), text.size(), unix_seconds,
                                          rendered.out(), spans.out(), error.out());
  if (code == HFTEXT_RAISED) return TemplateError(file_, "refuses the messages", error.str());
  if (code != HFTEXT_OK) return TemplateError(file_, "failed", error.str());
  return RenderedChat{rendered.str(), spans.ranges()};
}

bool ChatTemplate::has_generation() const { return hftext_template_has_generation(handle_) != 0; }

}  // namespace traind
