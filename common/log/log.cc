#include "common/log/log.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace traind {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

absl::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

// spdlog does the time stamp and the locking; the line itself is ours.
spdlog::logger& Logger() {
  static spdlog::logger logger = [] {
    spdlog::logger made("traind", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_formatter(std::make_unique<spdlog::pattern_formatter>("ts=%Y-%m-%dT%H:%M:%S.%eZ %v",
                                                                   spdlog::pattern_time_type::utc));
    made.flush_on(spdlog::level::debug);
    return made;
  }();
  return logger;
}

bool IsBare(char c) { return c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\'; }

}  // namespace

std::string LogfmtValue(absl::string_view value) {
  if (!value.empty() && std::all_of(value.begin(), value.end(), IsBare)) return std::string(value);
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '\n')
      quoted += "\\n";
    else if (c == '"' || c == '\\')
      absl::StrAppend(&quoted, "\\", std::string(1, c));
    else if (static_cast<unsigned char>(c) < ' ')
      absl::StrAppendFormat(&quoted, "\\x%02x", c);
    else
      quoted += c;
  }
  return quoted + "\"";
}

void Log(LogLevel level, absl::string_view event, LogFields fields, absl::string_view message) {
  if (!Logger().should_log(ToSpdlog(level))) return;
  std::string line = absl::StrCat("level=", LevelName(level), " event=", event);
  for (const auto& [key, value] : fields) absl::StrAppend(&line, " ", key, "=", LogfmtValue(value));
  if (!message.empty()) absl::StrAppend(&line, " msg=", LogfmtValue(message));
  Logger().log(ToSpdlog(level), line);
}

void SetLogLevel(LogLevel level) { Logger().set_level(ToSpdlog(level)); }

}  // namespace traind
