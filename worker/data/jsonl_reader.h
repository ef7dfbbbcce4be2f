// JSON Lines files, read strictly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace traind {

// One row.
struct JsonlRow {
  int64_t line = 0;              // Physical line of the file, from 1.
  nlohmann::ordered_json value;  // An object.
};

// Reads a file row by row. A row ends at LF (a CR before it is dropped) or at the file's end, and
// nowhere else. Blank lines are skipped but counted. A byte-order mark at the file's start is
// skipped. Thread-compatible.
class JsonlReader {
 public:
  // `max_row_bytes`: longer lines are refused. Errors: DATASET_NOT_FOUND, DATASET_INVALID.
  static absl::StatusOr<JsonlReader> Open(const std::string& path, int64_t max_row_bytes);

  JsonlReader(JsonlReader&& other) noexcept;
  JsonlReader& operator=(JsonlReader&&) = delete;
  ~JsonlReader();

  // The next row; nothing at the end. Errors: DATASET_INVALID with file and line: not UTF-8, not
  // JSON, NaN or Infinity, a key given twice, a lone surrogate, a byte-order mark in the middle,
  // no object, a line that is too long.
  absl::StatusOr<std::optional<JsonlRow>> Next();

 private:
  JsonlReader(int descriptor, std::string path, size_t max_row_bytes)
      : descriptor_(descriptor), path_(std::move(path)), max_row_bytes_(max_row_bytes) {}

  // Puts the next line into line_; false at the end.
  absl::StatusOr<bool> ReadLine();
  absl::Status FillBuffer();
  absl::Status CheckStart();
  absl::StatusOr<JsonlRow> ParseLine() const;
  absl::Status Invalid(absl::string_view why) const;

  int descriptor_;
  std::string path_;
  size_t max_row_bytes_;
  std::string buffer_;  // What was read and not yet consumed begins at position_.
  size_t position_ = 0;
  std::string line_;
  int64_t line_number_ = 0;
};

}  // namespace traind
