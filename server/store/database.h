// SQLite's connection and statement as C++ values, and its errors as ours.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace traind::store {

struct DatabaseOptions {
  std::string path;
  bool read_only = false;
  absl::Duration busy_timeout = absl::Seconds(5);
  int64_t max_pages = 0;  // 0: no limit.
};

// A connection. Thread-compatible.
class Database {
 public:
  // Sets the write-ahead log, synchronous=FULL and foreign keys. Errors: as JobStore's, and
  // DATA_LOSS (STORE_INVALID) if the file is not a database.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const DatabaseOptions& options);

  // Runs one or more statements without parameters or rows.
  absl::Status Execute(const std::string& sql);

  // Whether a transaction is open. SQLite may end one by itself when the disk is full.
  bool InTransaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

  // Rows that the newest statement changed.
  int64_t changes() const { return sqlite3_changes64(handle_.get()); }

  // The newest error, with what was tried.
  absl::Status LastError(absl::string_view action) const;

 private:
  friend class Statement;

  struct Closer {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };

  explicit Database(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::unique_ptr<sqlite3, Closer> handle_;
};

// A statement with its parameters, bound in order. A failed Bind shows at the next Step. Lives
// shorter than its Database. Thread-compatible.
class Statement {
 public:
  Statement(Database& database, const std::string& sql);

  Statement& Bind(absl::string_view text);
  Statement& Bind(int64_t number);
  Statement& BindBlob(absl::string_view bytes);

  // True: there is a row. False: there is none left.
  absl::StatusOr<bool> Step();
  // For statements without rows.
  absl::Status Run();

  int64_t Int(int column) const { return sqlite3_column_int64(handle_.get(), column); }
  // Valid until the next Step.
  absl::string_view Bytes(int column) const;

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
  };

  void Note(int code);

  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalizer> handle_;
  absl::Status first_error_;
  int next_parameter_ = 1;
};

}  // namespace traind::store
