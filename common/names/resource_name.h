// Names of resources: `jobs/{job}`, `jobs/{job}/attempts/{n}`, `jobs/{job}/checkpoints/{id}`.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace traind {

// Whether `id` may be the last part of a job's name: [a-z][a-z0-9-]{0,62}.
bool IsJobId(absl::string_view id);

std::string JobName(absl::string_view job_id);
std::string AttemptName(absl::string_view job_name, int attempt);
std::string CheckpointName(absl::string_view job_name, absl::string_view checkpoint_id);

// The `{job}` of `jobs/{job}`. INVALID_ARGUMENT, naming `field`, if `name` is not of that form.
absl::StatusOr<std::string> ParseJobName(absl::string_view name, absl::string_view field = "name");

// The two parts of `jobs/{job}/checkpoints/{checkpoint}`.
struct CheckpointId {
  std::string job_name;       // `jobs/{job}`
  std::string checkpoint_id;  // A step in decimal, or `adapter`.
};
absl::StatusOr<CheckpointId> ParseCheckpointName(absl::string_view name);

}  // namespace traind
