// Watches over workers: starts them, keeps their leases, stops them, and knows when they are gone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/os/process_table.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind::supervisor {

// A worker that an earlier daemon started.
struct EarlierWorker {
  std::string attempt_uid;
  std::string attempt_dir;
  ProcessIdentity identity;  // Empty if the daemon died before it wrote it down.
};

// What a worker looks like from outside.
struct WorkerStatus {
  std::string attempt_uid;
  bool connected = false;
  absl::Duration heartbeat_age;  // Since its last sign of life, or since it was started.
};

// Thread-safe. Each worker that is given to it ends with exactly one WorkerReports::OnWorkerGone,
// unless the daemon stops before.
class Supervisor {
 public:
  virtual ~Supervisor() = default;

  // Starts the attempt's worker. Errors: LAUNCH_FAILED, DISK_FULL; no OnWorkerGone follows then.
  virtual absl::StatusOr<ProcessIdentity> StartWorker(
      const worker::v1::WorkerAssignment& assignment) = 0;

  // Watches a worker again. One that is gone meanwhile is reported as every other. False, and
  // nothing follows, if `identity` is empty and no process carries the attempt's mark: then it was
  // never started, or ended before anybody knew, and may be started now.
  virtual bool ReattachWorker(const EarlierWorker& worker) = 0;

  // Ends the processes of all attempts of this state folder that are not in `known`, and returns
  // when they are gone. Called once, before anything is started.
  virtual void KillStrays(const std::set<std::string>& known) = 0;

  // Tells the worker to leave, now or once it dials in, and kills it after `grace`. A second call
  // can only bring the end nearer. Nothing happens if the attempt is not known.
  virtual void StopWorker(const std::string& attempt_uid, bool checkpoint,
                          absl::Duration grace) = 0;

  virtual std::vector<WorkerStatus> ListWorkers() = 0;
};

}  // namespace traind::supervisor
