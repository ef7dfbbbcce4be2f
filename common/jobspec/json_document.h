// Reads strict JSON: what most readers let pass without a word is an error here.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace traind::jobspec {

// Keeps the order of the keys, so that problems are reported in the order of the file.
using Json = nlohmann::ordered_json;

// Parses `text`, whose name in messages is `file_name`.
// INVALID_ARGUMENT (INVALID_FIELD) with `file:line:column` for a syntax error, invalid UTF-8, a
// lone surrogate, NaN, Infinity, a number that does not fit a double, a key that is given twice, or
// nesting deeper than 64.
absl::StatusOr<Json> ParseJson(absl::string_view text, const std::string& file_name);

// `value` as JSON on one line, cut after about 60 bytes; for messages.
std::string Excerpt(const Json& value);

}  // namespace traind::jobspec
