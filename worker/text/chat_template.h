// Conversations to text, exactly as Transformers' apply_chat_template renders them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/text/tokenizer.h"

struct hftext_template;

namespace traind {

// What a template made of a conversation.
struct RenderedChat {
  std::string text;
  // The text inside {% generation %} … {% endgeneration %}, in order; empty if the template has
  // no such blocks.
  std::vector<ByteRange> generated;
};

// One Jinja template. Thread-safe. Templates are foreign code: rendering is bounded in steps and
// depth, and whatever Jinja2 in Transformers' sandbox would render differently is an error.
class ChatTemplate {
 public:
  // `special_tokens`: what the template may name, such as `bos_token` → `<s>`. `file` is named in
  // errors. Errors: TEXT_INVALID with the line of a syntax error.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Create(
      absl::string_view source, const std::map<std::string, std::string>& special_tokens,
      absl::string_view file);

  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;
  ~ChatTemplate();

  // `messages_json`: a JSON list of messages. `add_generation_prompt`: end with the head of the
  // assistant's next turn. Errors: TEXT_INVALID; a template's own raise_exception() text is kept.
  absl::StatusOr<RenderedChat> Render(absl::string_view messages_json,
                                      bool add_generation_prompt) const;

  // As Render, with further variables: a JSON object such as {"tools": […]}, which wins over the
  // special tokens, and the time that strftime_now() shows, in seconds since 1970.
  absl::StatusOr<RenderedChat> RenderWith(absl::string_view messages_json,
                                          bool add_generation_prompt,
                                          absl::string_view variables_json,
                                          int64_t unix_seconds) const;

  // True if the template marks what the assistant generates.
  bool has_generation() const;

  const std::string& source() const { return source_; }

 private:
  ChatTemplate(hftext_template* handle, absl::string_view source,
               const std::map<std::string, std::string>& special_tokens, absl::string_view file);

  hftext_template* handle_;
  std::string source_;
  std::map<std::string, std::string> special_tokens_;
  std::string file_;
};

}  // namespace traind
