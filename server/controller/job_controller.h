// What the API may ask of the controller.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "traind/v1/job.pb.h"
#include "traind/v1/job_service.pb.h"

namespace traind::controller {

// Thread-safe; calls return after the commit.
class JobController {
 public:
  virtual ~JobController() = default;

  // `request.job` is validated and has every default. Errors: as JobStore::CreateJob, RESOURCE_
  // EXHAUSTED (QUEUE_FULL), UNAVAILABLE (DRAINING).
  virtual absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request,
                                            const std::string& owner) = 0;
  // Errors: NOT_FOUND (JOB_NOT_FOUND), ABORTED (ETAG_MISMATCH).
  virtual absl::StatusOr<v1::Job> CancelJob(const std::string& name, const std::string& etag) = 0;
  // Errors: as CancelJob, FAILED_PRECONDITION (JOB_NOT_DELETABLE).
  virtual absl::Status DeleteJob(const std::string& name, const std::string& etag) = 0;

  // The devices of this node and who holds them.
  struct DeviceUse {
    std::string device_id;
    std::string job_name;  // Empty: free.
  };
  virtual std::vector<DeviceUse> ListDeviceUse() = 0;
};

}  // namespace traind::controller
