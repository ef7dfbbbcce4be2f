#include "server/artifacts/job_paths.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::artifacts {
namespace {

constexpr size_t kMaxUidBytes = 64;
constexpr absl::string_view kRemovedSuffix = ".removed";

bool IsUid(absl::string_view uid) {
  return !uid.empty() && uid.size() <= kMaxUidBytes &&
         std::all_of(uid.begin(), uid.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '-'; });
}

}  // namespace

absl::StatusOr<JobPaths> JobPaths::ForJob(const std::string& state_dir,
                                          const std::string& job_uid) {
  if (!IsUid(job_uid)) {
    return Error(absl::StatusCode::kInternal, Reason::kBug,
                 absl::StrCat("`", job_uid, "` is not a job's uid"), {{"job_uid", job_uid}});
  }
  return JobPaths(absl::StrCat(state_dir, "/jobs/", job_uid));
}

std::string JobPaths::attempt_dir(int attempt) const {
  return absl::StrCat(job_dir_, "/attempts/", attempt);
}

std::string JobPaths::assignment_file(int attempt) const {
  return absl::StrCat(attempt_dir(attempt), "/assignment.json");
}

std::string JobPaths::log_file(int attempt) const {
  return absl::StrCat(attempt_dir(attempt), "/worker.log");
}

std::string JobPaths::checkpoints_dir() const { return absl::StrCat(job_dir_, "/checkpoints"); }

std::string JobPaths::checkpoint_dir(int64_t step) const {
  return absl::StrCat(checkpoints_dir(), "/checkpoint-", step);
}

std::string JobPaths::adapter_dir() const { return absl::StrCat(job_dir_, "/adapter"); }

absl::Status CreateAttemptFolders(const JobPaths& paths, int attempt) {
  for (const std::string& folder : {paths.checkpoints_dir(), paths.attempt_dir(attempt)}) {
    TRAIND_RETURN_IF_ERROR(CreateDirectories(folder));
  }
  const std::string attempts = absl::StrCat(paths.job_dir(), "/attempts");
  for (const std::string& folder : {attempts, paths.job_dir(), paths.job_dir() + "/.."}) {
    TRAIND_RETURN_IF_ERROR(SyncDirectory(folder));
  }
  return absl::OkStatus();
}

absl::Status RemoveJobFolder(const JobPaths& paths) {
  if (!FileExists(paths.job_dir())) return absl::OkStatus();
  const std::string removed = absl::StrCat(paths.job_dir(), kRemovedSuffix);
  TRAIND_RETURN_IF_ERROR(RenameDurably(paths.job_dir(), removed));
  return RemoveAll(removed);
}

absl::Status RemoveLeftovers(const std::string& state_dir) {
  const std::string folder = absl::StrCat(state_dir, "/jobs");
  if (!FileExists(folder)) return absl::OkStatus();
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  for (const std::string& name : names) {
    if (!absl::EndsWith(name, kRemovedSuffix)) continue;
    TRAIND_RETURN_IF_ERROR(RemoveAll(absl::StrCat(folder, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace traind::artifacts
