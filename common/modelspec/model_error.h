// Errors about the files of a base model.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace traind {

// INVALID_ARGUMENT (MODEL_INVALID): "`path`: `text`".
absl::Status ModelInvalid(const std::string& path, absl::string_view text);

// NOT_FOUND (MODEL_NOT_FOUND): "`path`: `text`".
absl::Status ModelNotFound(const std::string& path, absl::string_view text);

}  // namespace traind
