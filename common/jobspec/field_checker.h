// Collects the wrong fields of a message.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/status/errors.h"
#include "google/protobuf/duration.pb.h"

namespace traind::jobspec {

// Lowest and highest right value; an open end is itself wrong.
struct Interval {
  double low;
  double high;
  bool low_open = false;
  bool high_open = false;
};

// Every method checks one field, whose path is `prefix` + `field`. Thread-compatible.
class FieldChecker {
 public:
  explicit FieldChecker(std::string prefix) : prefix_(std::move(prefix)) {}

  // Fields below `prefix` from now on.
  void Enter(absl::string_view prefix) { prefix_ = std::string(prefix); }

  void Add(absl::string_view field, absl::string_view description);
  void Integer(absl::string_view field, int64_t value, int64_t low, int64_t high = INT64_MAX);
  // NaN and infinity are always wrong.
  void Number(absl::string_view field, double value, const Interval& interval);
  // Names the choices and, for a slip of the pen, the nearest one.
  void Choice(absl::string_view field, absl::string_view value,
              const std::vector<std::string>& choices);
  // Absolute, at most 4,096 bytes, without NUL.
  void PathForm(absl::string_view field, absl::string_view path);
  void MaxBytes(absl::string_view field, absl::string_view text, size_t limit);
  void PositiveDuration(absl::string_view field, const google::protobuf::Duration& duration);

  const std::vector<FieldViolation>& violations() const { return violations_; }

 private:
  std::string prefix_;
  std::vector<FieldViolation> violations_;
};

}  // namespace traind::jobspec
