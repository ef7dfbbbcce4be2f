#include "worker/data/assistant_turns.h"

#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status/errors.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

// Stands in for a turn's content: private-use characters that no template and hardly a text has.
constexpr char kProbe[] = "\xF3\xB0\x82\xA0\xF3\xB0\x82\xA1";
constexpr int64_t kClock = -1;

bool IsWhiteSpace(absl::string_view text) {
  return text.find_first_not_of(" \t\r\n") == absl::string_view::npos;
}

// Finds the turns of one conversation.
class TurnFinder {
 public:
  TurnFinder(const TextModel& model, const Json& messages, const Json& variables)
      : model_(model), messages_(messages), variables_(variables.dump()) {}

  absl::StatusOr<TokenizedChat> Run() {
    TRAIND_ASSIGN_OR_RETURN(RenderedChat chat, Render(messages_, false));
    text_ = std::move(chat.text);
    TRAIND_ASSIGN_OR_RETURN(Encoding encoding, model_.EncodeWithOffsets(text_));
    offsets_ = std::move(encoding.offsets);
    result_.ids = std::move(encoding.ids);
    result_.supervised.assign(result_.ids.size(), 0);
    if (model_.chat_template->has_generation()) {
      for (const ByteRange& turn : chat.generated) Supervise(TokensOf(turn));
    } else {
      TRAIND_RETURN_IF_ERROR(FindTurns());
    }
    return std::move(result_);
  }

 private:
  // Tokens [begin, end).
  struct TokenRange {
    size_t begin = 0;
    size_t end = 0;
  };

  absl::StatusOr<RenderedChat> Render(const Json& messages, bool add_generation_prompt) const {
    return model_.chat_template->RenderWith(messages.dump(), add_generation_prompt, variables_,
                                            kClock);
  }

  absl::Status FindTurns() {
    for (size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i]["role"] != "assistant") continue;
      std::optional<TokenRange> turn = TurnByPrefix(i);
      if (!turn.has_value()) turn = TurnByProbe(i);
      if (!turn.has_value()) return NotFound(i);
      Supervise(*turn);
    }
    return absl::OkStatus();
  }

  static absl::Status NotFound(size_t turn) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kTextInvalid,
                 absl::StrCat("messages[", turn,
                              "] cannot be found in the rendered conversation, "
                              "because the chat template renders a turn otherwise once more turns "
                              "follow; mark the assistant's turns with {% generation %}, or train "
                              "on all tokens with loss_on: all"));
  }

  // The turn between its generation prompt and the end of the conversation up to it; nothing if
  // the template has no generation prompt or these texts are no beginnings of the whole one.
  std::optional<TokenRange> TurnByPrefix(size_t i) const {
    const auto prompt = Render(UpTo(i), true);
    const auto bare = Render(UpTo(i), false);
    const auto full = Render(UpTo(i + 1), false);
    if (!prompt.ok() || !bare.ok() || !full.ok() || prompt->text == bare->text) return std::nullopt;
    if (!absl::StartsWith(full->text, prompt->text) || !absl::StartsWith(text_, full->text)) {
      return std::nullopt;
    }
    TokenRange turn = TokensOf({prompt->text.size(), full->text.size()});
    turn.end = WithoutTail(turn);
    return turn;
  }

  // The turn where a rendering with another content differs from ours, with the special token
  // that follows it.
  std::optional<TokenRange> TurnByProbe(size_t i) const {
    if (!messages_[i].contains("content") || !messages_[i]["content"].is_string()) {
      return std::nullopt;
    }
    Json probing = messages_;
    probing[i]["content"] = kProbe;
    const auto chat = Render(probing, false);
    if (!chat.ok()) return std::nullopt;
    const absl::string_view text = chat->text;
    const size_t at = text.find(kProbe);
    if (at == absl::string_view::npos) return std::nullopt;
    const absl::string_view head = text.substr(0, at);
    const absl::string_view tail = text.substr(at + sizeof(kProbe) - 1);
    if (head.size() + tail.size() > text_.size() || !absl::StartsWith(text_, head) ||
        !absl::EndsWith(text_, tail)) {
      return std::nullopt;
    }
    TokenRange turn = TokensOf({head.size(), text_.size() - tail.size()});
    turn.end = WithTerminator(turn);
    return turn;
  }

  Json UpTo(size_t count) const {
    Json messages = Json::array();
    for (size_t i = 0; i < count; ++i) messages.push_back(messages_[i]);
    return messages;
  }

  TokenRange TokensOf(const ByteRange& bytes) const {
    size_t begin = 0;
    while (begin < offsets_.size() && offsets_[begin].end <= bytes.begin) ++begin;
    size_t end = begin;
    while (end < offsets_.size() && offsets_[end].begin < bytes.end) ++end;
    return {begin, end};
  }

  bool IsStop(size_t token) const {
    const int32_t id = result_.ids[token];
    return id == model_.eos.id || model_.tokenizer->IsSpecial(id);
  }

  bool IsWhiteSpaceToken(size_t token) const {
    const ByteRange& range = offsets_[token];
    return IsWhiteSpace(absl::string_view(text_).substr(range.begin, range.end - range.begin));
  }

  // The end of the turn's last special token if only white space follows it.
  size_t WithoutTail(const TokenRange& turn) const {
    size_t end = turn.end;
    while (end > turn.begin && !IsStop(end - 1) && IsWhiteSpaceToken(end - 1)) --end;
    return end > turn.begin && IsStop(end - 1) ? end : turn.end;
  }

  // The end of the special token that follows the turn, maybe behind white space.
  size_t WithTerminator(const TokenRange& turn) const {
    size_t next = turn.end;
    while (next < offsets_.size() && !IsStop(next) && IsWhiteSpaceToken(next)) ++next;
    return next < offsets_.size() && IsStop(next) ? next + 1 : turn.end;
  }

  void Supervise(const TokenRange& turn) {
    if (turn.begin >= turn.end) return;
    for (size_t i = turn.begin; i < turn.end; ++i) result_.supervised[i] = 1;
    if (!IsStop(turn.end - 1)) result_.turn_without_stop_token = true;
  }

  const TextModel& model_;
  const Json& messages_;
  std::string variables_;
  std::string text_;
  std::vector<ByteRange> offsets_;
  TokenizedChat result_;
};

}  // namespace

absl::StatusOr<TokenizedChat> TokenizeChat(const TextModel& model, const Json& messages,
                                           const Json& variables) {
  return TurnFinder(model, messages, variables).Run();
}

}  // namespace traind
