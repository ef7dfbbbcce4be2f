// Finds what the assistant says in a rendered conversation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "worker/text/text_model.h"

namespace traind {

// A conversation as tokens.
struct TokenizedChat {
  std::vector<int32_t> ids;
  std::vector<uint8_t> supervised;  // Parallel to ids: 1 on the assistant's turns.
  // An assistant's turn ends without EOS or another special token: nothing would teach the model
  // to stop there.
  bool turn_without_stop_token = false;
};

// Renders `messages` and marks every turn of the assistant with the token that ends it. Turns are
// the template's {% generation %} blocks. Without such blocks a turn is what its message adds to
// the rendered conversation before it, from the end of the generation prompt on; if the template
// has no generation prompt, or renders the beginning otherwise once more turns follow, the turn is
// where a rendering with another content differs. White space behind the ending token is not part
// of the turn. `variables`: further variables of the template, such as `tools`.
// Errors: TEXT_INVALID if the template fails or a turn cannot be found.
absl::StatusOr<TokenizedChat> TokenizeChat(const TextModel& model,
                                           const nlohmann::ordered_json& messages,
                                           const nlohmann::ordered_json& variables);

}  // namespace traind
