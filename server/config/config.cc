#include "server/config/config.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "server/config/config_internal.h"

namespace traind::config {
namespace {

absl::Status Invalid(absl::string_view message, absl::string_view path) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid, message,
               {{"path", path}});
}

// Keeps the first error as `line:column: text`.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

absl::StatusOr<v1::TraindConfig> ParseText(const std::string& text, const std::string& path) {
  v1::TraindConfig config;
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  if (parser.ParseFromString(text, &config)) return config;
  return Invalid(absl::StrCat(path, ":", error.text(), "; docs/configuration.md lists the fields"),
                 path);
}

absl::StatusOr<v1::TraindConfig> ParseJson(const std::string& text, const std::string& path) {
  v1::TraindConfig config;
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, &config);
  if (parsed.ok()) return config;
  return Invalid(
      absl::StrCat(path, ": ", absl::string_view(parsed.message().data(), parsed.message().size()),
                   "; docs/configuration.md lists the fields"),
      path);
}

std::string HomeDir() {
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') return home;
  const passwd* user = getpwuid(getuid());
  return user == nullptr ? "" : user->pw_dir;
}

}  // namespace

HostDefaults CurrentHost() {
  HostDefaults host;
  host.home_dir = HomeDir();
  std::error_code error;
  host.executable_dir = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  host.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return host;
}

absl::StatusOr<v1::TraindConfig> ReadConfig(const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, Reason::kConfigInvalid));
  return absl::EndsWith(path, ".json") ? ParseJson(text, path) : ParseText(text, path);
}

absl::StatusOr<v1::TraindConfig> LoadConfig(const std::string& path, const HostDefaults& host) {
  TRAIND_ASSIGN_OR_RETURN(v1::TraindConfig config, ReadConfig(path));
  absl::StatusOr<v1::TraindConfig> resolved = ResolveConfig(std::move(config), host);
  if (!resolved.ok()) return WithContext(resolved.status(), path);
  return resolved;
}

absl::StatusOr<v1::TraindConfig> ResolveConfig(v1::TraindConfig config, const HostDefaults& host) {
  FillDefaults(host, config);
  const std::vector<FieldViolation> violations = FindViolations(config);
  if (violations.empty()) return config;
  const std::string message =
      absl::StrJoin(violations, "; ", [](std::string* out, const FieldViolation& violation) {
        absl::StrAppend(out, violation.field, ": ", violation.description);
      });
  return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid, message,
               {{"field", violations.front().field}});
}

std::string PrintConfig(const v1::TraindConfig& config) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  return text;
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

unsigned SocketMode(const v1::TraindConfig& config) {
  return static_cast<unsigned>(std::strtoul(config.unix_socket_mode().c_str(), nullptr, 8));
}

LogLevel LogLevelOf(const v1::TraindConfig& config) {
  if (config.log_level() == "debug") return LogLevel::kDebug;
  if (config.log_level() == "warn") return LogLevel::kWarn;
  if (config.log_level() == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

absl::StatusOr<HostPort> ParseHostPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort result;
  const bool has_port = colon != std::string::npos &&
                        absl::SimpleAtoi(address.substr(colon + 1), &result.port) &&
                        result.port >= 0 && result.port <= 65535;
  if (has_port) result.host = address.substr(0, colon);
  const bool bracketed = absl::StartsWith(result.host, "[") && absl::EndsWith(result.host, "]");
  if (bracketed) result.host = result.host.substr(1, result.host.size() - 2);
  if (result.host.empty() || bracketed != absl::StrContains(result.host, ':')) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid,
                 absl::StrCat("`", address, "` is not `host:port` or `[host]:port`"),
                 {{"address", address}});
  }
  return result;
}

bool IsLoopback(const std::string& host) {
  if (host == "localhost" || host == "::1") return true;
  // Only a literal address: `127.evil.example` is a name.
  int parts = 0;
  for (absl::string_view part : absl::StrSplit(host, '.')) {
    int number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 0 || number > 255) return false;
    ++parts;
  }
  return parts == 4 && absl::StartsWith(host, "127.");
}

}  // namespace traind::config
