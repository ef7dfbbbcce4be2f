#include <sys/un.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/config/config_internal.h"

namespace traind::config {
namespace {

// Collects wrong fields.
class Checker {
 public:
  void Add(absl::string_view field, absl::string_view description) {
    violations_.push_back({std::string(field), std::string(description)});
  }

  void AbsolutePath(absl::string_view field, absl::string_view path) {
    if (!absl::StartsWith(path, "/")) {
      Add(field, absl::StrCat("`", path, "` is not an absolute path; begin it with `/`"));
    } else if (absl::StrContains(path, absl::string_view("\0", 1))) {
      Add(field, "the path has a NUL character");
    }
  }

  void Range(absl::string_view field, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return;
    Add(field, absl::StrCat(value, " is out of range; allowed: ", low, " to ", high));
  }

  void Range(absl::string_view field, const google::protobuf::Duration& value, absl::Duration low,
             absl::Duration high) {
    const absl::Duration duration = ToDuration(value);
    if (duration >= low && duration <= high) return;
    Add(field, absl::StrCat(absl::FormatDuration(duration), " is out of range; allowed: ",
                            absl::FormatDuration(low), " to ", absl::FormatDuration(high)));
  }

  std::vector<FieldViolation> Take() { return std::move(violations_); }

 private:
  std::vector<FieldViolation> violations_;
};

void CheckUnixSocket(const v1::TraindConfig& config, Checker& check) {
  check.AbsolutePath("listen_unix", config.listen_unix());
  const size_t longest = sizeof(sockaddr_un::sun_path) - 1;
  if (config.listen_unix().size() > longest) {
    check.Add("listen_unix", absl::StrCat("the path has ", config.listen_unix().size(),
                                          " bytes; a socket's path may have ", longest));
  }
  const std::string& mode = config.unix_socket_mode();
  const bool octal = mode.size() >= 3 && mode.size() <= 4 &&
                     mode.find_first_not_of("01234567") == std::string::npos;
  if (!octal || SocketMode(config) > 0777) {
    check.Add("unix_socket_mode", absl::StrCat("`", mode, "` is not a mode in octal such as 0660"));
  }
}

void CheckTls(const v1::TcpListener& listener, Checker& check) {
  const std::pair<absl::string_view, const std::string*> files[] = {
      {"listen_tcp.tls_certificate_file", &listener.tls_certificate_file()},
      {"listen_tcp.tls_key_file", &listener.tls_key_file()},
      {"listen_tcp.token_file", &listener.token_file()}};
  for (const auto& [field, path] : files) {
    if (path->empty()) {
      check.Add(field, "is needed to listen on TCP; only `insecure_loopback` does without");
    } else {
      check.AbsolutePath(field, *path);
    }
  }
}

void CheckPlainTcp(const v1::TcpListener& listener, const std::string& host, Checker& check) {
  if (!IsLoopback(host)) {
    check.Add("listen_tcp.insecure_loopback",
              absl::StrCat("`", listener.address(),
                           "` can be reached from other machines; use 127.0.0.1 or TLS"));
  }
  if (!listener.tls_certificate_file().empty() || !listener.tls_key_file().empty() ||
      !listener.token_file().empty()) {
    check.Add("listen_tcp.insecure_loopback", "excludes TLS and token files; choose one");
  }
}

void CheckTcp(const v1::TraindConfig& config, Checker& check) {
  if (!config.has_listen_tcp()) return;
  const v1::TcpListener& listener = config.listen_tcp();
  const auto address = ParseHostPort(listener.address());
  if (!address.ok()) check.Add("listen_tcp.address", address.status().message());
  if (!listener.insecure_loopback()) return CheckTls(listener, check);
  if (address.ok()) CheckPlainTcp(listener, address->host, check);
}

void CheckDurations(const v1::TraindConfig& config, Checker& check) {
  const absl::Duration lease = ToDuration(config.worker_lease());
  check.Range("worker_lease", config.worker_lease(), absl::Seconds(1), absl::Hours(1));
  check.Range("worker_heartbeat", config.worker_heartbeat(), absl::Milliseconds(100),
              std::max(absl::Milliseconds(100), lease / 3));
  check.Range("cancel_grace", config.cancel_grace(), absl::ZeroDuration(), absl::Hours(1));
}

void CheckLogLevel(const std::string& level, Checker& check) {
  for (const char* known : {"debug", "info", "warn", "error"}) {
    if (level == known) return;
  }
  check.Add("log_level", absl::StrCat("`", level, "` is not one of debug, info, warn, error"));
}

}  // namespace

std::vector<FieldViolation> FindViolations(const v1::TraindConfig& config) {
  Checker check;
  check.AbsolutePath("state_dir", config.state_dir());
  CheckUnixSocket(config, check);
  CheckTcp(config, check);
  if (!config.metrics_address().empty()) {
    const auto address = ParseHostPort(config.metrics_address());
    if (!address.ok()) check.Add("metrics_address", address.status().message());
  }
  for (int i = 0; i < config.allowed_roots_size(); ++i) {
    check.AbsolutePath(absl::StrCat("allowed_roots[", i, "]"), config.allowed_roots(i));
  }
  check.AbsolutePath("worker_binary", config.worker_binary());
  check.Range("cpu_slots", config.cpu_slots(), 0, 1024);
  check.Range("worker_threads", config.worker_threads(), 1, 1024);
  check.Range("max_queued_jobs", config.max_queued_jobs(), 1, 1000000);
  CheckDurations(config, check);
  CheckLogLevel(config.log_level(), check);
  return check.Take();
}

}  // namespace traind::config
