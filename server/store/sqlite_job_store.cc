#include "server/store/sqlite_job_store.h"

#include <utility>

#include "common/status/errors.h"
#include "server/store/job_queries.h"
#include "server/store/job_writes.h"
#include "server/store/migrations.h"

namespace traind::store {

absl::StatusOr<std::unique_ptr<SqliteJobStore>> SqliteJobStore::Open(
    const SqliteJobStoreOptions& options) {
  DatabaseOptions database{options.path, false, options.busy_timeout, options.max_pages};
  TRAIND_ASSIGN_OR_RETURN(std::unique_ptr<Database> writer, Database::Open(database));
  TRAIND_RETURN_IF_ERROR(CheckIntegrity(*writer));
  TRAIND_RETURN_IF_ERROR(Migrate(*writer));
  database.read_only = true;
  database.max_pages = 0;
  return std::unique_ptr<SqliteJobStore>(new SqliteJobStore(std::move(writer), database));
}

SqliteJobStore::SqliteJobStore(std::unique_ptr<Database> writer,
                               const DatabaseOptions& reader_options)
    : readers_(reader_options), commits_(std::move(writer)) {}

absl::StatusOr<CreateResult> SqliteJobStore::CreateJob(JobChange change, const RequestId& request) {
  CreateResult result;
  TRAIND_RETURN_IF_ERROR(commits_.Run([&](Database& database) -> absl::Status {
    TRAIND_ASSIGN_OR_RETURN(result, InsertJob(database, change, request));
    return absl::OkStatus();
  }));
  return result;
}

absl::StatusOr<std::optional<v1::Job>> SqliteJobStore::FindRequest(const RequestId& request) {
  TRAIND_ASSIGN_OR_RETURN(ReaderPool::Lease lease, readers_.Borrow());
  return FindReplay(lease.database(), request);
}

absl::StatusOr<v1::Job> SqliteJobStore::Commit(JobChange change) {
  v1::Job job;
  TRAIND_RETURN_IF_ERROR(commits_.Run([&](Database& database) -> absl::Status {
    TRAIND_ASSIGN_OR_RETURN(job, UpdateJob(database, change));
    return absl::OkStatus();
  }));
  return job;
}

absl::Status SqliteJobStore::DeleteJob(const std::string& name) {
  return commits_.Run([&](Database& database) { return RemoveJob(database, name); });
}

absl::StatusOr<JobRecord> SqliteJobStore::GetJob(const std::string& name) {
  TRAIND_ASSIGN_OR_RETURN(ReaderPool::Lease lease, readers_.Borrow());
  return ReadJob(lease.database(), name);
}

absl::StatusOr<JobPage> SqliteJobStore::ListJobs(const JobQuery& query) {
  TRAIND_ASSIGN_OR_RETURN(ReaderPool::Lease lease, readers_.Borrow());
  return ReadPage(lease.database(), query);
}

absl::StatusOr<std::vector<JobRecord>> SqliteJobStore::LoadActiveJobs() {
  TRAIND_ASSIGN_OR_RETURN(ReaderPool::Lease lease, readers_.Borrow());
  return ReadActiveJobs(lease.database());
}

absl::StatusOr<std::map<v1::Job::State, int64_t>> SqliteJobStore::CountJobs() {
  TRAIND_ASSIGN_OR_RETURN(ReaderPool::Lease lease, readers_.Borrow());
  return ReadCounts(lease.database());
}

absl::StatusOr<std::vector<v1::Event>> SqliteJobStore::ReadEvents(const std::string& job_uid,
                                                                  int64_t after, int limit) {
  TRAIND_ASSIGN_OR_RETURN(ReaderPool::Lease lease, readers_.Borrow());
  return ReadEventsAfter(lease.database(), job_uid, after, limit);
}

}  // namespace traind::store
