#include "client/output/format.h"

#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace traind::client {
namespace {

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return absl::StrCat(bytes, " B");
  return absl::StrFormat("%.*f %s", std::abs(value) < 10 ? 2 : 1, value, kUnits[unit]);
}

std::string FormatCount(int64_t count) {
  std::string text = absl::StrCat(count);
  const size_t first = text.front() == '-' ? 1 : 0;
  for (size_t end = text.size(); end > first + 3; end -= 3) text.insert(end - 3, ",");
  return text;
}

std::string FormatNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return absl::StrFormat("%.4g", value);
}

std::string ShortDuration(absl::Duration duration) {
  if (duration < absl::ZeroDuration()) duration = absl::ZeroDuration();
  if (duration == absl::InfiniteDuration()) return "?";
  const double seconds = absl::ToDoubleSeconds(duration);
  if (seconds > 0 && seconds < 9.95) return absl::StrFormat("%.1fs", seconds);
  const int64_t total = std::llround(seconds);
  const int64_t minutes = total / 60, hours = minutes / 60, days = hours / 24;
  if (days > 0) return absl::StrCat(days, "d", hours % 24, "h");
  if (hours > 0) return absl::StrFormat("%dh%02dm", hours, minutes % 60);
  if (minutes > 0) return absl::StrFormat("%dm%02ds", minutes, total % 60);
  return absl::StrCat(total, "s");
}

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

std::string ShortTime(const google::protobuf::Timestamp& timestamp) {
  if (timestamp.seconds() == 0) return "-";
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", ToTime(timestamp), absl::UTCTimeZone());
}

std::string ShortAge(const google::protobuf::Timestamp& timestamp, absl::Time now) {
  if (timestamp.seconds() == 0) return "-";
  return ShortDuration(absl::Trunc(now - ToTime(timestamp), absl::Seconds(1)));
}

int DisplayWidth(absl::string_view text) {
  int width = 0;
  for (const char byte : text) width += IsContinuation(byte) ? 0 : 1;
  return width;
}

std::string FitWidth(absl::string_view text, int width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width < 1) return "";
  size_t end = 0;
  for (int column = 0; end < text.size(); ++end) {
    if (!IsContinuation(text[end]) && ++column == width) break;
  }
  return absl::StrCat(text.substr(0, end), "…");
}

std::vector<std::string> WrapWords(absl::string_view text, int width) {
  std::vector<std::string> lines = {""};
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    std::string& line = lines.back();
    if (line.empty() || DisplayWidth(line) + 1 + DisplayWidth(word) <= width) {
      absl::StrAppend(&line, line.empty() ? "" : " ", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

std::string OneLine(absl::string_view text) {
  std::string result;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if (byte == '\n' || byte == '\t') {
      result.push_back(' ');
    } else if (code >= 0x20 && code != 0x7F) {
      result.push_back(byte);
    }
  }
  return result;
}

}  // namespace traind::client
