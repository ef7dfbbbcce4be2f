// The daemon's settings: read, completed with defaults, and checked.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "server/config/traind_config.pb.h"

namespace traind::config {

// What some defaults depend on.
struct HostDefaults {
  std::string home_dir;        // Empty: unknown.
  std::string executable_dir;  // Folder of the running program.
  int cores = 1;
};

// The host that the program runs on.
HostDefaults CurrentHost();

// Reads a file as JSON (name ends in `.json`) or protobuf text, and neither completes nor checks
// it. Errors: as LoadConfig's, of reading.
absl::StatusOr<v1::TraindConfig> ReadConfig(const std::string& path);

// Reads a file as JSON (name ends in `.json`) or protobuf text and resolves it. Errors: NOT_FOUND,
// PERMISSION_DENIED and INVALID_ARGUMENT, all CONFIG_INVALID, naming the file and the line or every
// wrong field.
absl::StatusOr<v1::TraindConfig> LoadConfig(const std::string& path, const HostDefaults& host);

// Sets every unset field to its default, then checks all of them. Errors: INVALID_ARGUMENT
// (CONFIG_INVALID) with every wrong field in the message.
absl::StatusOr<v1::TraindConfig> ResolveConfig(v1::TraindConfig config, const HostDefaults& host);

// As protobuf text that LoadConfig reads.
std::string PrintConfig(const v1::TraindConfig& config);

absl::Duration ToDuration(const google::protobuf::Duration& duration);

// `unix_socket_mode` as a number. REQUIRES: a resolved configuration.
unsigned SocketMode(const v1::TraindConfig& config);

// REQUIRES: a resolved configuration.
LogLevel LogLevelOf(const v1::TraindConfig& config);

// The parts of `host:port` or `[host]:port`.
struct HostPort {
  std::string host;  // Without brackets.
  int port = 0;
};

// Errors: INVALID_ARGUMENT (CONFIG_INVALID). Port 0 is allowed: the system chooses one.
absl::StatusOr<HostPort> ParseHostPort(const std::string& address);

// Whether `host` is `localhost`, 127.0.0.0/8 or ::1. No name is looked up.
bool IsLoopback(const std::string& host);

}  // namespace traind::config
