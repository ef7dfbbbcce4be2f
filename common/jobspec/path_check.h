// Paths of a job against the file system.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/status/reason.h"

namespace traind::jobspec {

// Whether `path`, after symbolic links are followed as far as it exists, is one of `roots` or lies
// below one. REQUIRES: absolute paths.
bool IsUnderRoots(const std::string& path, const std::vector<std::string>& roots);

enum class PathKind { kFile, kFileOrFolder };

// Whether this process may read `path`. Errors: NOT_FOUND or PERMISSION_DENIED with `reason` and
// metadata `path` and `field`.
absl::Status CheckReadable(const std::string& path, PathKind kind, Reason reason,
                           const std::string& field);

}  // namespace traind::jobspec
