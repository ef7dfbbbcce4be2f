// The JobStore in one SQLite file.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/store/commit_queue.h"
#include "server/store/job_store.h"
#include "server/store/reader_pool.h"

namespace traind::store {

struct SqliteJobStoreOptions {
  std::string path;                                // Of the database file; its folder must exist.
  absl::Duration busy_timeout = absl::Seconds(5);  // How long to wait for another process' lock.
  int64_t max_pages = 0;                           // Largest size in pages of 4 KiB; 0: no limit.
};

// Write-ahead log, synchronous=FULL: what a call returned survives a crash of the machine. One
// thread writes and commits the changes that wait together as one transaction, each behind its
// own savepoint; reads go through connections of their own and see whole commits only.
// Thread-safe.
class SqliteJobStore : public JobStore {
 public:
  // Opens or creates the file and brings its tables up to date. Errors: FAILED_PRECONDITION
  // (STORE_INVALID) if a newer traind wrote it, DATA_LOSS (STORE_INVALID) if it is damaged,
  // UNAVAILABLE (STORE_BUSY), RESOURCE_EXHAUSTED (DISK_FULL).
  static absl::StatusOr<std::unique_ptr<SqliteJobStore>> Open(const SqliteJobStoreOptions& options);

  absl::StatusOr<CreateResult> CreateJob(JobChange change, const RequestId& request) override;
  absl::StatusOr<std::optional<v1::Job>> FindRequest(const RequestId& request) override;
  absl::StatusOr<v1::Job> Commit(JobChange change) override;
  absl::StatusOr<JobRecord> GetJob(const std::string& name) override;
  absl::Status DeleteJob(const std::string& name) override;
  absl::StatusOr<JobPage> ListJobs(const JobQuery& query) override;
  absl::StatusOr<std::vector<JobRecord>> LoadActiveJobs() override;
  absl::StatusOr<std::map<v1::Job::State, int64_t>> CountJobs() override;
  absl::StatusOr<std::vector<v1::Event>> ReadEvents(const std::string& job_uid, int64_t after,
                                                    int limit) override;

 private:
  SqliteJobStore(std::unique_ptr<Database> writer, const DatabaseOptions& reader_options);

  ReaderPool readers_;
  CommitQueue commits_;  // Last: its thread ends first.
};

}  // namespace traind::store
