// One-line structured events on stderr, in logfmt.
//
//   ts=2026-01-31T12:00:00.000Z level=info event=job.state_changed job=jobs/a msg="…"
//
// Field names are listed in docs/logging.md.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace traind {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

using LogFields = std::initializer_list<std::pair<absl::string_view, std::string>>;

// Writes one line. `event` is `noun.past_verb`. Thread-safe; never throws and never blocks longer
// than the write to stderr.
void Log(LogLevel level, absl::string_view event, LogFields fields, absl::string_view message = "");

// Lines below `level` are dropped. kInfo at the start.
void SetLogLevel(LogLevel level);

// The value as it stands in a line: bare, or quoted and escaped.
std::string LogfmtValue(absl::string_view value);

}  // namespace traind
