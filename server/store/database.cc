#include "server/store/database.h"

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::store {
namespace {

struct Meaning {
  absl::StatusCode code;
  Reason reason;
  absl::string_view remedy;
};

Meaning MeaningOf(int code) {
  switch (code & 0xff) {  // The low byte is the primary result code.
    case SQLITE_FULL:
      return {absl::StatusCode::kResourceExhausted, Reason::kDiskFull, "free some space"};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {absl::StatusCode::kUnavailable, Reason::kStoreBusy, "try again"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {absl::StatusCode::kDataLoss, Reason::kStoreInvalid, "restore it from a copy"};
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return {absl::StatusCode::kPermissionDenied, Reason::kStoreInvalid,
              "check that its folder exists and may be written"};
    case SQLITE_IOERR:
      return {absl::StatusCode::kInternal, Reason::kStoreInvalid, "check the disk"};
    default:
      return {absl::StatusCode::kInternal, Reason::kBug, "report this"};
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const DatabaseOptions& options) {
  std::unique_ptr<Database> database(new Database(options.path));
  const int mode =
      options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  sqlite3* handle = nullptr;
  // Each connection is used by one thread at a time, so SQLite's own mutexes are not needed.
  const int code =
      sqlite3_open_v2(options.path.c_str(), &handle, mode | SQLITE_OPEN_NOMUTEX, nullptr);
  database->handle_.reset(handle);
  if (code != SQLITE_OK) return database->LastError("open");
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, static_cast<int>(absl::ToInt64Milliseconds(options.busy_timeout)));
  std::string setup = "PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL;";
  if (!options.read_only) absl::StrAppend(&setup, "PRAGMA journal_mode=WAL;");
  if (options.max_pages > 0) absl::StrAppend(&setup, "PRAGMA max_page_count=", options.max_pages);
  TRAIND_RETURN_IF_ERROR(database->Execute(setup));
  return database;
}

absl::Status Database::Execute(const std::string& sql) {
  if (sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return absl::OkStatus();
  }
  return LastError("use");
}

absl::Status Database::LastError(absl::string_view action) const {
  const int code = sqlite3_extended_errcode(handle_.get());
  const Meaning meaning = MeaningOf(code);
  const std::string error = sqlite3_errmsg(handle_.get());
  return Error(
      meaning.code, meaning.reason,
      absl::StrCat("cannot ", action, " the database ", path_, ": ", error, "; ", meaning.remedy),
      {{"path", path_}, {"error", error}, {"sqlite_code", absl::StrCat(code)}});
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  Note(sqlite3_prepare_v2(database.handle_.get(), sql.c_str(), static_cast<int>(sql.size()),
                          &handle, nullptr));
  handle_.reset(handle);
}

void Statement::Note(int code) {
  if (code != SQLITE_OK && first_error_.ok()) first_error_ = database_.LastError("use");
}

Statement& Statement::Bind(absl::string_view text) {
  Note(sqlite3_bind_text64(handle_.get(), next_parameter_++, text.data(), text.size(),
                           SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::Bind(int64_t number) {
  Note(sqlite3_bind_int64(handle_.get(), next_parameter_++, number));
  return *this;
}

Statement& Statement::BindBlob(absl::string_view bytes) {
  Note(sqlite3_bind_blob64(handle_.get(), next_parameter_++, bytes.data(), bytes.size(),
                           SQLITE_TRANSIENT));
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  TRAIND_RETURN_IF_ERROR(first_error_);
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return database_.LastError("use");
}

absl::Status Statement::Run() { return Step().status(); }

absl::string_view Statement::Bytes(int column) const {
  const void* bytes = sqlite3_column_blob(handle_.get(), column);
  if (bytes == nullptr) return "";
  return {static_cast<const char*>(bytes),
          static_cast<size_t>(sqlite3_column_bytes(handle_.get(), column))};
}

}  // namespace traind::store
