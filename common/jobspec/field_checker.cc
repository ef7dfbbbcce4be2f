#include "common/jobspec/field_checker.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/jobspec/nearest_name.h"

namespace traind::jobspec {
namespace {

constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxQuotedBytes = 100;
// The range of google.protobuf.Duration: 10,000 years.
constexpr int64_t kMaxDurationSeconds = 315576000000;

std::string Quoted(absl::string_view value) {
  return absl::StrCat("`", SafeText(value, kMaxQuotedBytes), "`");
}

// `[0, 1)`, `(0, inf)`, as the protos' comments write it.
std::string IntervalText(const Interval& interval) {
  const bool no_end = std::isinf(interval.high);
  return absl::StrCat(interval.low_open ? "(" : "[", interval.low, ", ",
                      no_end ? "inf" : absl::StrCat(interval.high),
                      interval.high_open || no_end ? ")" : "]");
}

bool Contains(const Interval& interval, double value) {
  const bool above = interval.low_open ? value > interval.low : value >= interval.low;
  const bool below = interval.high_open ? value < interval.high : value <= interval.high;
  return std::isfinite(value) && above && below;
}

}  // namespace

void FieldChecker::Add(absl::string_view field, absl::string_view description) {
  violations_.push_back({absl::StrCat(prefix_, field), std::string(description)});
}

void FieldChecker::Integer(absl::string_view field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return;
  if (high == INT64_MAX) return Add(field, absl::StrCat("must be at least ", low, "; got ", value));
  Add(field, absl::StrCat("must be in [", low, ", ", high, "]; got ", value));
}

void FieldChecker::Number(absl::string_view field, double value, const Interval& interval) {
  if (Contains(interval, value)) return;
  Add(field, absl::StrCat("must be a finite number in ", IntervalText(interval), "; got ", value));
}

void FieldChecker::Choice(absl::string_view field, absl::string_view value,
                          const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (value == choice) return;
  }
  std::string text = absl::StrCat("must be ", choices.size() > 1 ? "one of " : "",
                                  absl::StrJoin(choices, ", "), "; got ", Quoted(value));
  const std::string nearest = NearestName(value, choices);
  if (!nearest.empty()) absl::StrAppend(&text, "; did you mean `", nearest, "`?");
  Add(field, text);
}

void FieldChecker::PathForm(absl::string_view field, absl::string_view path) {
  if (path.empty()) return Add(field, "is required");
  if (path.size() > kMaxPathBytes) {
    return Add(field, absl::StrCat("has ", path.size(), " bytes; a path may have ", kMaxPathBytes));
  }
  if (absl::StrContains(path, absl::string_view("\0", 1))) return Add(field, "has a NUL character");
  if (path.front() != '/') {
    Add(field, absl::StrCat("must be an absolute path on the daemon's host; got ", Quoted(path)));
  }
}

void FieldChecker::MaxBytes(absl::string_view field, absl::string_view text, size_t limit) {
  if (text.size() <= limit) return;
  Add(field, absl::StrCat("may have ", limit, " bytes; got ", text.size()));
}

void FieldChecker::PositiveDuration(absl::string_view field,
                                    const google::protobuf::Duration& duration) {
  const bool in_range = duration.seconds() >= 0 && duration.seconds() <= kMaxDurationSeconds &&
                        duration.nanos() >= 0 && duration.nanos() < 1000000000;
  if (in_range && (duration.seconds() > 0 || duration.nanos() > 0)) return;
  Add(field, absl::StrCat("must be a positive duration such as 3600s; got ", duration.seconds(),
                          " s and ", duration.nanos(), " ns"));
}

}  // namespace traind::jobspec
