#include "common/modelspec/model_error.h"

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind {

absl::Status ModelInvalid(const std::string& path, absl::string_view text) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kModelInvalid,
               absl::StrCat(path, ": ", text), {{"path", path}});
}

absl::Status ModelNotFound(const std::string& path, absl::string_view text) {
  return Error(absl::StatusCode::kNotFound, Reason::kModelNotFound, absl::StrCat(path, ": ", text),
               {{"path", path}});
}

}  // namespace traind
