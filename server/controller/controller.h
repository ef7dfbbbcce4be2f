// The only writer of job state: takes requests from the API, plans from the scheduler and reports
// from workers, and turns each into one committed change.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "traind/v1/job.pb.h"
#include "traind/v1/job_service.pb.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind::controller {

// What the API may ask for. Thread-safe; calls return after the commit.
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

// What a worker connection may say; implemented by the controller, called by the supervisor.
class WorkerReports {
 public:
  virtual ~WorkerReports() = default;

  // A worker dialled in. Returns the newest committed report number. Errors: FAILED_PRECONDITION
  // (ATTEMPT_FENCED).
  virtual absl::StatusOr<int64_t> OnHello(const worker::v1::Hello& hello) = 0;
  // Commits reports in order and returns the newest committed number; reports at or below it are
  // dropped silently. Errors: ATTEMPT_FENCED.
  virtual absl::StatusOr<int64_t> OnReports(const std::string& attempt_uid, int64_t fencing_token,
                                            const std::vector<worker::v1::Report>& reports) = 0;
  // The worker's process is known to be gone, or its lease ran out and it was killed.
  virtual void OnWorkerGone(const std::string& attempt_uid, const absl::Status& why) = 0;
};

}  // namespace traind::controller
