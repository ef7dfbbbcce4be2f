// Whether a job makes sense, before anything is stored.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "traind/v1/job.pb.h"
#include "traind/v1/job_service.pb.h"

namespace traind::jobspec {

struct ValidationContext {
  // Folders that paths must lie under after symbolic links are followed; absolute.
  std::vector<std::string> allowed_roots;
  // False: only the form of paths is checked, for a client on another machine.
  bool check_files = true;
};

// Checks a job that FillDefaults completed. Errors:
//   INVALID_ARGUMENT (INVALID_FIELD)   every wrong field at once, such as
//                                      `job.spec.training.learning_rate`; also a path outside the
//                                      allowed roots, whether it exists or not
//   NOT_FOUND or PERMISSION_DENIED (MODEL_NOT_FOUND, DATASET_NOT_FOUND)
//                                      the first path that is missing or unreadable, once all
//                                      fields are right; metadata `path` and `field`
absl::Status ValidateJob(const v1::Job& job, const ValidationContext& context);

// The same for a whole request, `job_id` and `request_id` included.
absl::Status ValidateCreateJobRequest(const v1::CreateJobRequest& request,
                                      const ValidationContext& context);

// Whether `text` is a version 4 UUID such as `f47ac10b-58cc-4372-a567-0e02b2c3d479`.
bool IsUuid4(absl::string_view text);

}  // namespace traind::jobspec
