// Numbers, times and texts as people read them. Independent of the locale.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace traind::client {

// `1.4 GiB`, `312 B`.
std::string FormatBytes(int64_t bytes);

// `4,884,480`.
std::string FormatCount(int64_t count);

// A loss or the like: four significant digits, `NaN`, `-inf`.
std::string FormatNumber(double value);

// Two units at most: `2m31s`, `3h05m`, `4d2h`, `0s`, `0.4s`.
std::string ShortDuration(absl::Duration duration);

// UNIX epoch if unset.
absl::Time ToTime(const google::protobuf::Timestamp& timestamp);

// UTC in ISO 8601 with seconds; `-` if unset.
std::string ShortTime(const google::protobuf::Timestamp& timestamp);

// How long ago; `-` if unset.
std::string ShortAge(const google::protobuf::Timestamp& timestamp, absl::Time now);

// Columns of a terminal that `text` takes. Counts code points, so wide characters count as one.
int DisplayWidth(absl::string_view text);

// At most `width` columns; a cut text ends in `…`.
std::string FitWidth(absl::string_view text, int width);

// `text` in lines of at most `width` columns, broken at spaces; a longer word gets a line of its
// own. At least one line.
std::vector<std::string> WrapWords(absl::string_view text, int width);

// `text` without control characters, which could drive the terminal: line ends become spaces, the
// rest is dropped.
std::string OneLine(absl::string_view text);

}  // namespace traind::client
