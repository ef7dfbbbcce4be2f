// Starts and stops the processes of an attempt.
//
// Everything is keyed by the attempt's uid, which each of its processes carries as a mark, so that
// a call may be repeated after a crash of the daemon and nothing that an attempt started escapes.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/os/subprocess.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind::launcher {

// Thread-safe.
class Launcher {
 public:
  virtual ~Launcher() = default;

  // Writes the assignment into its `attempt_dir` and starts the worker, which outlives the daemon.
  // Errors: LAUNCH_FAILED, DISK_FULL.
  virtual absl::StatusOr<Subprocess> Launch(const worker::v1::WorkerAssignment& assignment) = 0;

  // The attempt's worker that an earlier daemon started. `identity` may be empty if it did not get
  // to writing it down; the mark decides then. NOT_FOUND if it is gone.
  virtual absl::StatusOr<Subprocess> Find(const std::string& attempt_uid,
                                          const ProcessIdentity& identity) = 0;

  // Ends every process of the attempt: SIGTERM, after `grace` SIGKILL. Returns OK only when none
  // is left; blocks until then. Errors: DEADLINE_EXCEEDED (WORKER_LOST) naming a process that even
  // SIGKILL does not end.
  virtual absl::Status KillAttempt(const std::string& attempt_uid, absl::Duration grace) = 0;

  // Uids of the attempts of this daemon's state folder that have a process.
  virtual std::vector<std::string> FindAttempts() = 0;

  // The last lines that the attempt's worker wrote to stderr, for error messages; empty if none.
  virtual std::string LastLogLines(const std::string& attempt_dir) = 0;

  // Reaps dead processes that nobody else waits for.
  virtual void ReapOrphans() = 0;
};

}  // namespace traind::launcher
