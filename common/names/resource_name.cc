#include "common/names/resource_name.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status/errors.h"

namespace traind {
namespace {

constexpr size_t kMaxJobIdBytes = 63;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsCheckpointId(absl::string_view id) {
  return id == "adapter" ||
         (!id.empty() && id.size() <= 18 && std::all_of(id.begin(), id.end(), IsDigit));
}

}  // namespace

bool IsJobId(absl::string_view id) {
  return !id.empty() && id.size() <= kMaxJobIdBytes && IsLower(id.front()) &&
         std::all_of(id.begin(), id.end(),
                     [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

std::string JobName(absl::string_view job_id) { return absl::StrCat("jobs/", job_id); }

std::string AttemptName(absl::string_view job_name, int attempt) {
  return absl::StrCat(job_name, "/attempts/", attempt);
}

std::string CheckpointName(absl::string_view job_name, absl::string_view checkpoint_id) {
  return absl::StrCat(job_name, "/checkpoints/", checkpoint_id);
}

absl::StatusOr<std::string> ParseJobName(absl::string_view name, absl::string_view field) {
  constexpr absl::string_view kPrefix = "jobs/";
  if (absl::StartsWith(name, kPrefix) && IsJobId(name.substr(kPrefix.size()))) {
    return std::string(name.substr(kPrefix.size()));
  }
  return FieldErrors({{std::string(field),
                       absl::StrCat("must be `jobs/{job}` with a job id of [a-z][a-z0-9-]{0,62}; "
                                    "got `",
                                    name, "`")}});
}

absl::StatusOr<CheckpointId> ParseCheckpointName(absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  if (parts.size() == 4 && parts[0] == "jobs" && IsJobId(parts[1]) && parts[2] == "checkpoints" &&
      IsCheckpointId(parts[3])) {
    return CheckpointId{JobName(parts[1]), std::string(parts[3])};
  }
  return FieldErrors({{"name", absl::StrCat("must be `jobs/{job}/checkpoints/{step}` or "
                                            "`jobs/{job}/checkpoints/adapter`; got `",
                                            name, "`")}});
}

}  // namespace traind
