// What workers say, as the supervisor passes it on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind::supervisor {

// Implemented by the controller, called by the supervisor. Thread-safe; calls block until their
// change is committed.
class WorkerReports {
 public:
  virtual ~WorkerReports() = default;

  // A worker dialled in. Returns the newest committed report number. Errors: FAILED_PRECONDITION
  // (ATTEMPT_FENCED).
  virtual absl::StatusOr<int64_t> OnHello(const worker::v1::Hello& hello) = 0;

  // Commits reports in order and returns the newest committed number; reports at or below it are
  // dropped silently. Errors: ATTEMPT_FENCED, and what a commit may fail with.
  virtual absl::StatusOr<int64_t> OnReports(const std::string& attempt_uid, int64_t fencing_token,
                                            const std::vector<worker::v1::Report>& reports) = 0;

  // Every process of the attempt is known to be gone and all it said has been passed on. `why`
  // says how it ended; never OK.
  virtual void OnWorkerGone(const std::string& attempt_uid, const absl::Status& why) = 0;
};

}  // namespace traind::supervisor
