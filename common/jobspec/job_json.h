// Reads the job file that a user writes.
//
// The file is the JSON of traind.v1.Job in snake_case. The short form leaves `spec` out and has
// `base_model`, `dataset`, `lora` … at the top. Spellings of older and newer Transformers, PEFT and
// TRL are understood (known_fields.h); what is not known is refused, never skipped.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traind/v1/job.pb.h"

namespace traind::jobspec {

// A job file as it was read.
struct JobFile {
  v1::Job job;
  // How the file writes a field: path from the job (`spec.training.eval_strategy`) to path in the
  // file (`training.evaluation_strategy`). Only fields that the file has; `spec` itself is in it.
  std::map<std::string, std::string> written_as;
};

// The path in the file of `field`, a path of an error of CreateJob such as
// `job.spec.base_model.path`. Fields that the file does not have are written as the file would.
std::string PathInFile(const JobFile& file, absl::string_view field);

// Parses `text`. `file_name` is its name in messages; relative paths in the job are resolved
// against `folder`, an absolute path.
// INVALID_ARGUMENT (INVALID_FIELD): for a syntax error with file:line:column; else with every wrong
// field at once, as BadRequest violations whose paths are those of the file.
absl::StatusOr<JobFile> ParseJob(absl::string_view text, const std::string& file_name,
                                 const std::string& folder);

// Reads and parses the file at `path`. Errors also: NOT_FOUND, PERMISSION_DENIED.
absl::StatusOr<JobFile> ReadJobFile(const std::string& path);

}  // namespace traind::jobspec
