// Where a job's files lie below the state folder.
//
//   <state_dir>/jobs/<uid>/attempts/<n>/assignment.json   what the worker was told
//   <state_dir>/jobs/<uid>/attempts/<n>/worker.log        what it wrote to stderr
//   <state_dir>/jobs/<uid>/attempts/<n>/…                 the worker's own, such as its spool
//   <state_dir>/jobs/<uid>/checkpoints/checkpoint-<step>/
//   <state_dir>/jobs/<uid>/adapter/                       the finished adapter
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace traind::artifacts {

// The paths of one job. A value; touches no disk but where it says so.
class JobPaths {
 public:
  // Errors: INTERNAL (BUG) if `job_uid` is not of [0-9A-Za-z-]{1,64}, so that no path leaves the
  // state folder.
  static absl::StatusOr<JobPaths> ForJob(const std::string& state_dir, const std::string& job_uid);

  const std::string& job_dir() const { return job_dir_; }
  std::string attempt_dir(int attempt) const;
  std::string assignment_file(int attempt) const;
  std::string log_file(int attempt) const;
  std::string checkpoints_dir() const;
  std::string checkpoint_dir(int64_t step) const;
  std::string adapter_dir() const;

 private:
  explicit JobPaths(std::string job_dir) : job_dir_(std::move(job_dir)) {}

  std::string job_dir_;
};

// Creates the folders that an attempt needs, durably. Errors: as CreateDirectories.
absl::Status CreateAttemptFolders(const JobPaths& paths, int attempt);

// Removes every file of the job. The folder is renamed first, so that a crash in between leaves no
// half of it in place; what it left is removed by the next call of RemoveLeftovers. A missing
// folder is no error.
absl::Status RemoveJobFolder(const JobPaths& paths);

// Removes what an interrupted RemoveJobFolder left. Called once at start.
absl::Status RemoveLeftovers(const std::string& state_dir);

}  // namespace traind::artifacts
