// Reads what a worker wrote to its log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace traind::artifacts {

// A piece of a log.
struct LogPiece {
  std::string data;
  int64_t next_offset = 0;  // Where the next piece begins.
  bool at_end = false;      // Nothing (or half a line, see below) is left behind it.
};

// At most `max_bytes` bytes from `offset` on, cut at a line's end where there is one. Half a line
// at the end of the file is held back while the attempt runs (`complete` is false), as the worker
// may be writing it. A log that does not exist yet is empty. Errors: OUT_OF_RANGE (INVALID_FIELD)
// if `offset` is negative or beyond the end, INTERNAL.
absl::StatusOr<LogPiece> ReadLog(const std::string& log_file, int64_t offset, size_t max_bytes,
                                 bool complete);

}  // namespace traind::artifacts
