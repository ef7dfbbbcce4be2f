#include "worker/checkpoint/checkpoint_retention.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "worker/checkpoint/folder_manifest.h"

namespace traind {
namespace {

constexpr absl::string_view kFolderPrefix = "checkpoint-";
constexpr absl::string_view kTemporaryPrefix = ".tmp-checkpoint-";

// Whether the folder is a complete checkpoint of the run at the step that its name says.
bool IsComplete(const std::string& folder, const std::string& run_id, int64_t step) {
  const auto manifest = ReadManifest(folder);
  return manifest.ok() && manifest->run_id == run_id && manifest->step == step &&
         CheckFiles(folder, *manifest, /*hashes=*/false).ok();
}

}  // namespace

std::string CheckpointFolderName(int64_t step) { return absl::StrCat(kFolderPrefix, step); }

bool ParseCheckpointFolderName(absl::string_view name, int64_t* step) {
  const absl::string_view whole = name;
  return absl::ConsumePrefix(&name, kFolderPrefix) && absl::SimpleAtoi(name, step) && *step >= 0 &&
         CheckpointFolderName(*step) == whole;
}

std::vector<int64_t> CheckpointsToRemove(std::vector<int64_t> complete, int64_t just_saved,
                                         int64_t keep_last) {
  if (keep_last <= 0) return {};
  complete.erase(std::remove(complete.begin(), complete.end(), just_saved), complete.end());
  std::sort(complete.begin(), complete.end());
  const size_t others = static_cast<size_t>(keep_last) - 1;
  if (complete.size() <= others) return {};
  complete.resize(complete.size() - others);
  return complete;
}

absl::StatusOr<std::vector<int64_t>> RemoveOldCheckpoints(const std::string& directory,
                                                          const std::string& run_id,
                                                          int64_t just_saved, int64_t keep_last) {
  if (keep_last <= 0) return std::vector<int64_t>{};
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<int64_t> complete;
  for (const std::string& name : names) {
    int64_t step = 0;
    if (!ParseCheckpointFolderName(name, &step)) continue;
    if (IsComplete(absl::StrCat(directory, "/", name), run_id, step)) complete.push_back(step);
  }
  const std::vector<int64_t> removed = CheckpointsToRemove(complete, just_saved, keep_last);
  for (const int64_t step : removed) {
    TRAIND_RETURN_IF_ERROR(RemoveAll(absl::StrCat(directory, "/", CheckpointFolderName(step))));
  }
  return removed;
}

absl::Status RemoveTemporaries(const std::string& directory) {
  if (!FileExists(directory)) return absl::OkStatus();
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kTemporaryPrefix)) continue;
    TRAIND_RETURN_IF_ERROR(RemoveAll(absl::StrCat(directory, "/", name)));
  }
  return absl::OkStatus();
}

}  // namespace traind
