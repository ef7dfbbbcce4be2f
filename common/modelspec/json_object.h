// JSON objects from files that others wrote. For .cc files only: the JSON library is large.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace traind {

// Parses one JSON object. A key that occurs twice in an object is an error, as readers disagree on
// which one counts. `path` only names the file. Errors: MODEL_INVALID with line and column.
absl::StatusOr<nlohmann::json> ParseJsonObject(absl::string_view text, const std::string& path);

// A value for messages: a scalar as JSON, anything else as the name of its type.
std::string JsonText(const nlohmann::json& value);

}  // namespace traind
