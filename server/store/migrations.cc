#include "server/store/migrations.h"

#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::store {
namespace {

// Step N is at index N-1. A step that was released is never edited; changes are new steps.
//
// A job's columns repeat what queries need from its record; the record is the truth.
constexpr const char* kSteps[] = {
    R"sql(
CREATE TABLE jobs (
  uid TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  state INTEGER NOT NULL,
  create_ns INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  last_sequence INTEGER NOT NULL,
  record BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX jobs_by_age ON jobs (create_ns, uid);
CREATE INDEX jobs_by_state ON jobs (state, create_ns, uid);

CREATE TABLE job_labels (
  job_uid TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (job_uid, key)
) WITHOUT ROWID;

CREATE TABLE attempts (
  job_uid TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  record BLOB NOT NULL,
  PRIMARY KEY (job_uid, number)
) WITHOUT ROWID;

CREATE TABLE events (
  job_uid TEXT NOT NULL REFERENCES jobs (uid) ON DELETE CASCADE,
  sequence INTEGER NOT NULL,
  event BLOB NOT NULL,
  PRIMARY KEY (job_uid, sequence)
) WITHOUT ROWID;

CREATE TABLE request_ids (
  id TEXT PRIMARY KEY,
  request_hash INTEGER NOT NULL,
  job_uid TEXT NOT NULL,
  job_name TEXT NOT NULL,
  create_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX request_ids_by_age ON request_ids (create_ns);
)sql",
};

absl::StatusOr<int> ReadVersion(Database& database) {
  Statement statement(database, "PRAGMA user_version");
  TRAIND_RETURN_IF_ERROR(statement.Step().status());
  return static_cast<int>(statement.Int(0));
}

absl::Status NewerVersion(int version) {
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kStoreInvalid,
               absl::StrCat("the database has version ", version, ", but this traind knows ",
                            CurrentSchemaVersion(),
                            " at most; start the traind that wrote it, or a newer one"),
               {{"version", absl::StrCat(version)},
                {"known_version", absl::StrCat(CurrentSchemaVersion())}});
}

absl::Status RunStep(Database& database, int version) {
  TRAIND_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  absl::Status status = database.Execute(kSteps[version - 1]);
  if (status.ok()) status = database.Execute(absl::StrCat("PRAGMA user_version=", version));
  if (status.ok()) status = database.Execute("COMMIT");
  if (!status.ok() && database.InTransaction()) database.Execute("ROLLBACK").IgnoreError();
  return status;
}

}  // namespace

int CurrentSchemaVersion() { return static_cast<int>(std::size(kSteps)); }

absl::Status Migrate(Database& database) {
  TRAIND_ASSIGN_OR_RETURN(const int version, ReadVersion(database));
  if (version > CurrentSchemaVersion()) return NewerVersion(version);
  for (int next = version + 1; next <= CurrentSchemaVersion(); ++next) {
    TRAIND_RETURN_IF_ERROR(RunStep(database, next));
  }
  return absl::OkStatus();
}

absl::Status CheckIntegrity(Database& database) {
  Statement statement(database, "PRAGMA quick_check(1)");
  TRAIND_ASSIGN_OR_RETURN(const bool found, statement.Step());
  const std::string answer = found ? std::string(statement.Bytes(0)) : "no answer";
  if (answer == "ok") return absl::OkStatus();
  return Error(absl::StatusCode::kDataLoss, Reason::kStoreInvalid,
               absl::StrCat("the database is damaged: ", answer, "; restore it from a copy"),
               {{"error", answer}});
}

}  // namespace traind::store
