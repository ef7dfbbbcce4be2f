// Jobs, attempts, events and request ids, durable.
//
// Everything that a call changes is one transaction: after a crash it is there as a whole or not
// at all. Only this folder knows SQLite.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/jobs/job_record.h"
#include "traind/v1/event.pb.h"
#include "traind/v1/job.pb.h"

namespace traind::store {

using JobRecord = jobs::JobRecord;
using JobChange = jobs::JobUpdate;

// What CreateJob was called with, so that a retry is recognised.
struct RequestId {
  std::string id;  // Empty: not retried.
  uint64_t request_hash = 0;
  absl::Time now;  // Ids older than 24 h are forgotten.
};

struct CreateResult {
  v1::Job job;
  bool replayed = false;  // The request id was known; `job` is the first call's.
};

struct JobQuery {
  int page_size = 50;
  std::string page_token;
  std::vector<v1::Job::State> states;         // Empty: all.
  std::map<std::string, std::string> labels;  // All must match.
};

struct JobPage {
  std::vector<v1::Job> jobs;
  std::string next_page_token;
};

// Thread-safe. A call returns after its change is on disk; changes of several threads share one
// commit. Errors of all calls: UNAVAILABLE (STORE_BUSY), RESOURCE_EXHAUSTED (DISK_FULL).
class JobStore {
 public:
  virtual ~JobStore() = default;

  // Stores a new job with its first event. `job.name` and `job.uid` must be set. Errors:
  // ALREADY_EXISTS (JOB_EXISTS), ALREADY_EXISTS (REQUEST_ID_REUSED) if the id came with another
  // request.
  virtual absl::StatusOr<CreateResult> CreateJob(JobChange change, const RequestId& request) = 0;

  // The job that CreateJob made for this request before, as it is now, if it did. Errors:
  // REQUEST_ID_REUSED.
  virtual absl::StatusOr<std::optional<v1::Job>> FindRequest(const RequestId& request) = 0;

  // Applies a change and returns the job as stored: with the next revision, its etag
  // `"r<revision>"` and the newest sequence. Errors: NOT_FOUND (JOB_NOT_FOUND).
  virtual absl::StatusOr<v1::Job> Commit(JobChange change) = 0;

  // Errors of these: NOT_FOUND (JOB_NOT_FOUND).
  virtual absl::StatusOr<JobRecord> GetJob(const std::string& name) = 0;
  virtual absl::Status DeleteJob(const std::string& name) = 0;

  // Newest first. Errors: INVALID_ARGUMENT (BAD_PAGE_TOKEN).
  virtual absl::StatusOr<JobPage> ListJobs(const JobQuery& query) = 0;

  // Every job that is not terminal, oldest first.
  virtual absl::StatusOr<std::vector<JobRecord>> LoadActiveJobs() = 0;

  // Jobs by state, for metrics.
  virtual absl::StatusOr<std::map<v1::Job::State, int64_t>> CountJobs() = 0;

  // At most `limit` events with a sequence above `after`, in order. Errors: NOT_FOUND
  // (JOB_NOT_FOUND), so that a watcher learns of a deletion even if it was not woken.
  virtual absl::StatusOr<std::vector<v1::Event>> ReadEvents(const std::string& job_uid,
                                                            int64_t after, int limit) = 0;
};

}  // namespace traind::store
