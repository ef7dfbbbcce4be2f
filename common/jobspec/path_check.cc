#include "common/jobspec/path_check.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::jobspec {
namespace {

namespace fs = std::filesystem;

// Empty if it cannot be resolved, such as links in a circle or a folder that may not be searched.
fs::path Resolved(const std::string& path) {
  std::error_code error;
  fs::path resolved = fs::weakly_canonical(path, error);
  if (error) return {};
  // What does not exist is not resolved, so a `..` there would climb unseen.
  return resolved.lexically_normal();
}

bool IsWithin(const fs::path& path, const fs::path& root) {
  const auto [root_end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  // A root with a slash at its end has an empty last part.
  return root_end == root.end() || (root_end->empty() && std::next(root_end) == root.end());
}

absl::Status PathError(absl::StatusCode code, Reason reason, const std::string& text,
                       const std::string& path, const std::string& field) {
  return Error(code, reason, absl::StrCat(field, ": ", text), {{"path", path}, {"field", field}});
}

}  // namespace

bool IsUnderRoots(const std::string& path, const std::vector<std::string>& roots) {
  const fs::path resolved = Resolved(path);
  if (resolved.empty()) return false;
  return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) {
    const fs::path resolved_root = Resolved(root);
    return !resolved_root.empty() && IsWithin(resolved, resolved_root);
  });
}

absl::Status CheckReadable(const std::string& path, PathKind kind, Reason reason,
                           const std::string& field) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const bool denied = error == std::errc::permission_denied;
    return PathError(
        denied ? absl::StatusCode::kPermissionDenied : absl::StatusCode::kNotFound, reason,
        absl::StrCat("cannot find ", path, ": ", error ? error.message() : "No such file",
                     "; check the path on the daemon's host"),
        path, field);
  }
  const bool folder = fs::is_directory(status);
  if (folder ? kind == PathKind::kFile : !fs::is_regular_file(status)) {
    return PathError(absl::StatusCode::kNotFound, reason,
                     absl::StrCat(path, folder ? " is a folder; give a file"
                                               : " is neither a file nor a folder"),
                     path, field);
  }
  if (access(path.c_str(), folder ? R_OK | X_OK : R_OK) == 0) return absl::OkStatus();
  return PathError(absl::StatusCode::kPermissionDenied, reason,
                   absl::StrCat("cannot read ", path, ": ", std::strerror(errno),
                                "; let the daemon's user read it"),
                   path, field);
}

}  // namespace traind::jobspec
