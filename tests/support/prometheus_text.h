// A strict reader of Prometheus' text format 0.0.4.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace traind {

// Value text by series, such as `traind_jobs{state="QUEUED"}` -> `1`. INVALID_ARGUMENT, naming the
// line, for anything that the format does not allow: a sample before its HELP and TYPE, a family in
// two places, a series twice, a bad name, escape or number, no newline at the end.
absl::StatusOr<std::map<std::string, std::string>> ParsePrometheusText(const std::string& text);

}  // namespace traind
