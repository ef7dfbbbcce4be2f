// What each happening makes of a job: pure functions from (record, happening, time) to the update
// that the store commits. No I/O, no clock, no threads.
//
// How the pieces are used, by the one writer of job state:
//
//   1. A client creates a job: `store.CreateJob(QueuedJob(job, now), request_id)`.
//   2. The scheduler's plan gives it devices: commit `PlaceJob(record, placement, now)`, and only
//      then start the worker with the attempt's uid and fencing token. Commit
//      `WorkerLaunched(record, process, now)` once the process is there.
//      A waiting job gets `Waits(record, reason, now)`, one that no node can hold
//      `NeverFits(record, why, now)`.
//   3. The worker reports: commit `ApplyReports(record, attempt_uid, token, reports, now)` and
//      acknowledge `update.attempt->acknowledged_report()`. The first StepMetrics makes the job
//      RUNNING; Finished{SUCCEEDED, FAILED} ends it, though its devices are busy until the process
//      is gone.
//   4. Every process of the attempt is gone and its devices are verified free: commit
//      `AttemptLost(record, why, now)`. It is right in every state: a job that ended before is left
//      as it is, CANCELLING becomes CANCELLED, anything else is retried or fails.
//   5. A user cancels: commit `RequestCancel(record, now)`; if the job is CANCELLING then, tell the
//      worker to stop and wait for 4.
//
// After each commit: `MergeUpdate(update, stored, record)` keeps the record in memory in step, and
// watchers are told `stored.last_sequence()`. An empty optional means that nothing changes and
// nothing is to be committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/jobs/job_record.h"
#include "traind/v1/job.pb.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind::jobs {

// A new job in QUEUED with its first event. Every output-only field but `name`, `uid` and `owner`
// is reset. REQUIRES: those three are set and the job is validated.
JobUpdate QueuedJob(v1::Job job, absl::Time now);

// Where a job shall run.
struct Placement {
  std::string attempt_uid;           // New.
  std::string node;                  // `nodes/{node}`.
  std::vector<std::string> devices;  // Such as `cpu0`.
};

// A new attempt: the next number, a greater fencing token, the devices; the job is STARTING.
// Errors: FAILED_PRECONDITION (BUG) if the job is not QUEUED.
absl::StatusOr<JobUpdate> PlaceJob(const JobRecord& record, const Placement& placement,
                                   absl::Time now);

// The process that runs the newest attempt.
struct WorkerProcess {
  int32_t pid = 0;
  int64_t start_ticks = 0;  // Since boot.
  std::string boot_id;
};

// Remembers the process of the newest attempt, so that a restarted daemon finds it. No event.
// REQUIRES: the record has an attempt.
JobUpdate WorkerLaunched(const JobRecord& record, const WorkerProcess& process, absl::Time now);

// Why the job waits, for people. Empty if it says so already or is not QUEUED. No event.
std::optional<JobUpdate> Waits(const JobRecord& record, const std::string& reason, absl::Time now);

// No node can ever hold the job: FAILED with `why`. Errors: FAILED_PRECONDITION (BUG) if the job is
// not QUEUED.
absl::StatusOr<JobUpdate> NeverFits(const JobRecord& record, const absl::Status& why,
                                    absl::Time now);

// One update for all reports that are not committed yet; empty if there are none. Reports up to
// `acknowledged_report` are dropped; one that comes after `Finished` changes nothing but this
// number. Errors: as CheckFencing; OUT_OF_RANGE (SEQUENCE_OUT_OF_RANGE) if a report is missing in
// between.
absl::StatusOr<std::optional<JobUpdate>> ApplyReports(
    const JobRecord& record, const std::string& attempt_uid, int64_t fencing_token,
    const std::vector<worker::v1::Report>& reports, absl::Time now);

// FAILED_PRECONDITION (ATTEMPT_FENCED) unless this is the newest attempt, with its token, and the
// job still holds it: it is neither waiting nor ended.
absl::Status CheckFencing(const JobRecord& record, const std::string& attempt_uid,
                          int64_t fencing_token);

// The newest attempt's processes are gone and its devices are free. `why` is what is known about
// it; an error that the worker itself reported wins. In STARTING and RUNNING: QUEUED if `why` is
// WORKER_LOST or LAUNCH_FAILED and `resources.max_retries` leaves a retry, else FAILED. In
// CANCELLING: CANCELLED. Empty if the job is QUEUED or has ended.
absl::StatusOr<std::optional<JobUpdate>> AttemptLost(const JobRecord& record,
                                                     const absl::Status& why, absl::Time now);

// A user wants the job to end: CANCELLED at once if nothing of it runs, else CANCELLING. Empty if
// it is CANCELLING already or has ended.
std::optional<JobUpdate> RequestCancel(const JobRecord& record, absl::Time now);

}  // namespace traind::jobs
