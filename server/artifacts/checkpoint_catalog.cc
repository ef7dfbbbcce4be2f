#include "server/artifacts/checkpoint_catalog.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/names/resource_name.h"
#include "common/os/file.h"
#include "common/os/sha256.h"
#include "common/status/errors.h"
#include "server/artifacts/checkpoint_file_reader.h"
#include "server/artifacts/checkpoint_manifest.h"
#include "server/artifacts/job_paths.h"

namespace traind::artifacts {
namespace {

constexpr char kAdapterId[] = "adapter";
constexpr absl::string_view kFolderPrefix = "checkpoint-";

bool IsFolder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::Status NotFound(const std::string& name) {
  return Error(absl::StatusCode::kNotFound, Reason::kCheckpointNotFound,
               absl::StrCat("no checkpoint `", name, "`; `checkpoint list` shows what there is"),
               {{"checkpoint", name}});
}

// The step of `checkpoint-<step>`, written without leading zeros.
bool ParseFolderName(absl::string_view name, int64_t* step) {
  return absl::ConsumePrefix(&name, kFolderPrefix) && absl::SimpleAtoi(name, step) && *step >= 0 &&
         absl::StrCat(*step) == name;
}

absl::Status CheckFiles(const v1::Checkpoint& checkpoint) {
  for (const v1::CheckpointFile& file : checkpoint.files()) {
    TRAIND_RETURN_IF_ERROR(CheckpointFileReader::Open(checkpoint, file).status());
  }
  return absl::OkStatus();
}

v1::CheckpointFile DescribeManifest(const std::string& json) {
  Sha256 hash;
  hash.Update(json);
  v1::CheckpointFile file;
  file.set_path(kManifestFile);
  file.set_size_bytes(static_cast<int64_t>(json.size()));
  file.set_sha256(hash.Hex());
  return file;
}

// Fills what the manifest says, and the manifest itself.
absl::Status ReadManifest(v1::Checkpoint* checkpoint) {
  const std::string path = absl::StrCat(checkpoint->path(), "/", kManifestFile);
  TRAIND_ASSIGN_OR_RETURN(const std::string json, ReadFile(path, Reason::kCheckpointCorrupt));
  TRAIND_ASSIGN_OR_RETURN(const v1::Checkpoint manifest, ParseManifest(json, path));
  checkpoint->MergeFrom(manifest);
  *checkpoint->add_files() = DescribeManifest(json);
  return CheckFiles(*checkpoint);
}

// A file that is missing from a folder that is there is damage too.
absl::Status AsCorrupt(const absl::Status& status, const std::string& folder) {
  if (absl::IsDataLoss(status)) return status;
  return Error(
      absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
      absl::StrCat(folder, " is not whole: ", status.message(), "; use another checkpoint"),
      {{"path", folder}, {"problem", status.message()}});
}

void AddSize(v1::Checkpoint* checkpoint) {
  int64_t size = 0;
  for (const v1::CheckpointFile& file : checkpoint->files()) size += file.size_bytes();
  checkpoint->set_size_bytes(size);
}

// The folder `path` as the checkpoint `id` of the job.
absl::StatusOr<v1::Checkpoint> ReadFolder(const v1::Job& job, const std::string& id,
                                          const std::string& path) {
  v1::Checkpoint checkpoint;
  checkpoint.set_name(CheckpointName(job.name(), id));
  checkpoint.set_path(path);
  if (!IsFolder(path)) return NotFound(checkpoint.name());
  const absl::Status status = ReadManifest(&checkpoint);
  if (!status.ok()) return AsCorrupt(status, path);
  AddSize(&checkpoint);
  return checkpoint;
}

absl::StatusOr<v1::Checkpoint> ReadCheckpoint(const v1::Job& job, const JobPaths& paths,
                                              int64_t step) {
  TRAIND_ASSIGN_OR_RETURN(v1::Checkpoint checkpoint,
                          ReadFolder(job, absl::StrCat(step), paths.checkpoint_dir(step)));
  if (checkpoint.step() == step) return checkpoint;
  return Error(absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
               absl::StrCat(checkpoint.path(), " holds the update ", checkpoint.step(),
                            "; use another checkpoint"),
               {{"path", checkpoint.path()}, {"step", absl::StrCat(checkpoint.step())}});
}

absl::StatusOr<v1::Checkpoint> ReadAdapter(const v1::Job& job, const JobPaths& paths) {
  return ReadFolder(job, kAdapterId, paths.adapter_dir());
}

std::vector<int64_t> StepsOnDisk(const std::string& folder) {
  std::vector<int64_t> steps;
  if (!FileExists(folder)) return steps;
  const absl::StatusOr<std::vector<std::string>> names = ListDirectory(folder);
  if (!names.ok()) return steps;
  for (const std::string& name : *names) {
    int64_t step = 0;
    if (ParseFolderName(name, &step)) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

}  // namespace

absl::StatusOr<std::vector<v1::Checkpoint>> CheckpointCatalog::List(const v1::Job& job) const {
  TRAIND_ASSIGN_OR_RETURN(const JobPaths paths, JobPaths::ForJob(state_dir_, job.uid()));
  std::vector<v1::Checkpoint> checkpoints;
  for (const int64_t step : StepsOnDisk(paths.checkpoints_dir())) {
    absl::StatusOr<v1::Checkpoint> checkpoint = ReadCheckpoint(job, paths, step);
    if (checkpoint.ok()) checkpoints.push_back(*std::move(checkpoint));
  }
  absl::StatusOr<v1::Checkpoint> adapter = ReadAdapter(job, paths);
  if (adapter.ok()) checkpoints.push_back(*std::move(adapter));
  return checkpoints;
}

absl::StatusOr<v1::Checkpoint> CheckpointCatalog::Get(const v1::Job& job,
                                                      const std::string& id) const {
  TRAIND_ASSIGN_OR_RETURN(const JobPaths paths, JobPaths::ForJob(state_dir_, job.uid()));
  if (id == kAdapterId) return ReadAdapter(job, paths);
  int64_t step = 0;
  if (!absl::SimpleAtoi(id, &step) || step < 0) return NotFound(CheckpointName(job.name(), id));
  return ReadCheckpoint(job, paths, step);
}

}  // namespace traind::artifacts
