#include "server/store/job_writes.h"

#include <cstdint>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/status/errors.h"
#include "server/store/job_queries.h"

namespace traind::store {
namespace {

constexpr absl::Duration kRequestIdLife = absl::Hours(24);

int64_t CreateNanos(const v1::Job& job) {
  return job.create_time().seconds() * 1'000'000'000 + job.create_time().nanos();
}

// Gives the job its next revision and each event its next sequence, and stores the events.
absl::StatusOr<v1::Job> Number(Database& database, const JobChange& change, int64_t revision,
                               int64_t last_sequence) {
  v1::Job job = change.job;
  for (v1::Event event : change.events) {
    event.set_sequence(++last_sequence);
    Statement insert(database, "INSERT INTO events (job_uid, sequence, event) VALUES (?, ?, ?)");
    insert.Bind(job.uid()).Bind(event.sequence()).BindBlob(event.SerializeAsString());
    TRAIND_RETURN_IF_ERROR(insert.Run());
  }
  job.set_last_sequence(last_sequence);
  job.set_revision(revision);
  job.set_etag(absl::StrCat("\"r", revision, "\""));
  return job;
}

absl::Status PutAttempt(Database& database, const JobChange& change) {
  if (!change.attempt) return absl::OkStatus();
  Statement put(database,
                "INSERT OR REPLACE INTO attempts (job_uid, number, record) VALUES (?, ?, ?)");
  put.Bind(change.job.uid())
      .Bind(static_cast<int64_t>(change.attempt->number()))
      .BindBlob(change.attempt->SerializeAsString());
  return put.Run();
}

// Labels, too, may change with any change of the job.
absl::Status PutLabels(Database& database, const v1::Job& job) {
  Statement clear(database, "DELETE FROM job_labels WHERE job_uid = ?");
  TRAIND_RETURN_IF_ERROR(clear.Bind(job.uid()).Run());
  for (const auto& [key, value] : job.labels()) {
    Statement insert(database, "INSERT INTO job_labels (job_uid, key, value) VALUES (?, ?, ?)");
    TRAIND_RETURN_IF_ERROR(insert.Bind(job.uid()).Bind(key).Bind(value).Run());
  }
  return absl::OkStatus();
}

// The row goes in before what refers to it; UpdateRow fills in what is known only then.
absl::Status InsertRow(Database& database, const v1::Job& job) {
  Statement insert(database,
                   "INSERT INTO jobs (uid, name, state, create_ns, revision, last_sequence, record)"
                   " VALUES (?, ?, ?, ?, 0, 0, x'')");
  insert.Bind(job.uid()).Bind(job.name()).Bind(static_cast<int64_t>(job.state()));
  return insert.Bind(CreateNanos(job)).Run();
}

absl::Status UpdateRow(Database& database, const v1::Job& job) {
  Statement update(database,
                   "UPDATE jobs SET state = ?, revision = ?, last_sequence = ?, record = ?"
                   " WHERE uid = ?");
  update.Bind(static_cast<int64_t>(job.state())).Bind(job.revision()).Bind(job.last_sequence());
  return update.BindBlob(job.SerializeAsString()).Bind(job.uid()).Run();
}

absl::StatusOr<v1::Job> PutChange(Database& database, const JobChange& change, int64_t revision,
                                  int64_t last_sequence) {
  TRAIND_ASSIGN_OR_RETURN(v1::Job job, Number(database, change, revision, last_sequence));
  TRAIND_RETURN_IF_ERROR(PutAttempt(database, change));
  TRAIND_RETURN_IF_ERROR(PutLabels(database, job));
  TRAIND_RETURN_IF_ERROR(UpdateRow(database, job));
  return job;
}

absl::Status CheckNameIsFree(Database& database, const v1::Job& job) {
  Statement find(database, "SELECT 1 FROM jobs WHERE name = ? OR uid = ?");
  TRAIND_ASSIGN_OR_RETURN(const bool found, find.Bind(job.name()).Bind(job.uid()).Step());
  if (!found) return absl::OkStatus();
  return Error(absl::StatusCode::kAlreadyExists, Reason::kJobExists,
               absl::StrCat("a job `", job.name(), "` exists; choose another job_id, or delete it"),
               {{"job", job.name()}});
}

absl::Status ForgetOldRequestIds(Database& database, absl::Time now) {
  Statement forget(database, "DELETE FROM request_ids WHERE create_ns <= ?");
  return forget.Bind(absl::ToUnixNanos(now - kRequestIdLife)).Run();
}

absl::Status RememberRequestId(Database& database, const v1::Job& job, const RequestId& request) {
  Statement insert(database,
                   "INSERT INTO request_ids (id, request_hash, job_uid, job_name, create_ns)"
                   " VALUES (?, ?, ?, ?, ?)");
  insert.Bind(request.id).Bind(static_cast<int64_t>(request.request_hash)).Bind(job.uid());
  return insert.Bind(job.name()).Bind(absl::ToUnixNanos(request.now)).Run();
}

absl::Status RequestIdReused(const RequestId& request, absl::string_view job_name) {
  return Error(absl::StatusCode::kAlreadyExists, Reason::kRequestIdReused,
               absl::StrCat("request_id ", request.id, " created `", job_name,
                            "` from another request; use a new request_id for a new job"),
               {{"request_id", request.id}, {"job", job_name}});
}

}  // namespace

absl::StatusOr<std::optional<v1::Job>> FindReplay(Database& database, const RequestId& request) {
  Statement find(database, "SELECT request_hash, job_uid, job_name FROM request_ids WHERE id = ?");
  TRAIND_ASSIGN_OR_RETURN(const bool found, find.Bind(request.id).Step());
  if (!found) return std::nullopt;
  const std::string job_uid(find.Bytes(1));
  const std::string job_name(find.Bytes(2));
  if (static_cast<uint64_t>(find.Int(0)) != request.request_hash) {
    return RequestIdReused(request, job_name);
  }
  TRAIND_ASSIGN_OR_RETURN(JobRecord record, ReadJob(database, job_name));
  // The name may belong to another job by now.
  if (record.job.uid() != job_uid) return JobNotFound(job_name);
  return std::move(record.job);
}

absl::StatusOr<CreateResult> InsertJob(Database& database, const JobChange& change,
                                       const RequestId& request) {
  if (!request.id.empty()) {
    TRAIND_RETURN_IF_ERROR(ForgetOldRequestIds(database, request.now));
    TRAIND_ASSIGN_OR_RETURN(std::optional<v1::Job> earlier, FindReplay(database, request));
    if (earlier) return CreateResult{*std::move(earlier), true};
    TRAIND_RETURN_IF_ERROR(RememberRequestId(database, change.job, request));
  }
  TRAIND_RETURN_IF_ERROR(CheckNameIsFree(database, change.job));
  TRAIND_RETURN_IF_ERROR(InsertRow(database, change.job));
  TRAIND_ASSIGN_OR_RETURN(v1::Job job, PutChange(database, change, 1, 0));
  return CreateResult{std::move(job), false};
}

absl::StatusOr<v1::Job> UpdateJob(Database& database, const JobChange& change) {
  Statement find(database, "SELECT revision, last_sequence FROM jobs WHERE uid = ?");
  TRAIND_ASSIGN_OR_RETURN(const bool found, find.Bind(change.job.uid()).Step());
  if (!found) return JobNotFound(change.job.name());
  return PutChange(database, change, find.Int(0) + 1, find.Int(1));
}

absl::Status RemoveJob(Database& database, const std::string& name) {
  Statement remove(database, "DELETE FROM jobs WHERE name = ?");
  TRAIND_RETURN_IF_ERROR(remove.Bind(name).Run());
  return database.changes() > 0 ? absl::OkStatus() : JobNotFound(name);
}

}  // namespace traind::store
