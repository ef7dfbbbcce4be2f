// Make and inspect errors.
//
// Every error of traind is an absl::Status that carries a Reason and the values that its message
// mentions, as the google.rpc details that the client will see. No header here needs Protobuf.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/status/reason.h"

namespace traind {

using ErrorMetadata = std::initializer_list<std::pair<absl::string_view, absl::string_view>>;

// One wrong field of a request.
struct FieldViolation {
  std::string field;        // Path, such as `job.spec.lora.r`.
  std::string description;  // What is wrong and what would be right.
};

// `text` as valid UTF-8 of at most `max_bytes`: other bytes become `?`, a cut ends in `...`. For
// what a message quotes. REQUIRES: max_bytes >= 3.
std::string SafeText(absl::string_view text, size_t max_bytes);

// An error with a reason; its texts are made safe and short enough to travel. `message` says what
// is wrong, then what to do; every value in it belongs into `metadata` too.
absl::Status Error(absl::StatusCode code, Reason reason, absl::string_view message,
                   ErrorMetadata metadata = {});

// INVALID_ARGUMENT (INVALID_FIELD) for all wrong fields at once. REQUIRES: `violations` not empty.
// At most 20 are carried, as many as fit 4 KiB; the message says how many there were.
absl::Status FieldErrors(const std::vector<FieldViolation>& violations);

// An error of a system call on `path`: ENOSPC and EDQUOT become RESOURCE_EXHAUSTED (DISK_FULL),
// ENOENT becomes NOT_FOUND, EACCES becomes PERMISSION_DENIED, the rest INTERNAL, all with `reason`
// unless the disk is full.
absl::Status ErrnoError(int error_number, Reason reason, absl::string_view action,
                        absl::string_view path);

// The reason that the error carries; kUnspecified if it carries none or is OK.
Reason ReasonOf(const absl::Status& status);

// The value of `key` in the error's metadata; empty if there is none.
std::string MetadataOf(const absl::Status& status, absl::string_view key);

// The wrong fields that the error carries.
std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status);

// The same error with `prefix` and ": " before its message.
absl::Status WithContext(const absl::Status& status, absl::string_view prefix);

#define TRAIND_RETURN_IF_ERROR(expression)                                                    \
  do {                                                                                        \
    if (absl::Status traind_status = (expression); !traind_status.ok()) return traind_status; \
  } while (false)

#define TRAIND_CONCAT_INNER(a, b) a##b
#define TRAIND_CONCAT(a, b) TRAIND_CONCAT_INNER(a, b)
#define TRAIND_ASSIGN_OR_RETURN(lhs, expression) \
  TRAIND_ASSIGN_OR_RETURN_INNER(TRAIND_CONCAT(traind_statusor_, __LINE__), lhs, expression)
#define TRAIND_ASSIGN_OR_RETURN_INNER(statusor, lhs, expression) \
  auto statusor = (expression);                                  \
  if (!statusor.ok()) return statusor.status();                  \
  lhs = *std::move(statusor)

}  // namespace traind
