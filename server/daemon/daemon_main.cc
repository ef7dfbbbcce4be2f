#include "server/daemon/daemon_main.h"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/errors.h"
#include "server/config/config.h"
#include "server/daemon/daemon.h"
#include "server/daemon/version.h"

namespace traind::daemon {
namespace {

struct Flags {
  std::string config_file;
  std::string state_dir;
  std::string listen;
  bool check_config = false;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.set_version_flag("--version", absl::StrCat("traind ", kVersion));
  app.add_option("--config", flags.config_file,
                 "Configuration: protobuf text, or JSON if the name ends in .json");
  app.add_option("--state-dir", flags.state_dir, "Overrides `state_dir`");
  app.add_option("--listen", flags.listen,
                 "Overrides where clients connect: unix:PATH, or HOST:PORT on the loopback "
                 "interface (without TLS, for tests)");
  app.add_flag("--check-config", flags.check_config,
               "Check the configuration, print it with every default, and exit");
}

void Override(const Flags& flags, config::v1::TraindConfig& config) {
  if (!flags.state_dir.empty()) config.set_state_dir(flags.state_dir);
  constexpr absl::string_view kUnix = "unix:";
  if (absl::StartsWith(flags.listen, kUnix)) {
    config.set_listen_unix(flags.listen.substr(kUnix.size()));
  } else if (!flags.listen.empty()) {
    config.mutable_listen_tcp()->Clear();
    config.mutable_listen_tcp()->set_address(flags.listen);
    config.mutable_listen_tcp()->set_insecure_loopback(true);
  }
}

absl::StatusOr<config::v1::TraindConfig> MakeConfig(const Flags& flags) {
  config::v1::TraindConfig config;
  if (!flags.config_file.empty()) {
    TRAIND_ASSIGN_OR_RETURN(config, config::ReadConfig(flags.config_file));
  }
  Override(flags, config);
  auto resolved = config::ResolveConfig(std::move(config), config::CurrentHost());
  if (resolved.ok() || flags.config_file.empty()) return resolved;
  return WithContext(resolved.status(), flags.config_file);
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "traind: %s [%s]\n", std::string(status.message()).c_str(),
               std::string(ReasonName(ReasonOf(status))).c_str());
  return 1;
}

// Blocked before the first thread starts, so that every thread inherits it and only sigwait sees
// them.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signals;
}

int RunUntilSignal(const config::v1::TraindConfig& config) {
  const sigset_t signals = BlockStopSignals();
  auto daemon = Daemon::Start(config);
  if (!daemon.ok()) return Fail(daemon.status());
  int signal = 0;
  sigwait(&signals, &signal);
  Log(LogLevel::kInfo, "daemon.stopping", {{"signal", absl::StrCat(signal)}},
      "workers go on; a second signal ends the daemon at once");
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (*daemon)->Stop();
  return 0;
}

}  // namespace

int DaemonMain(int argc, char** argv) {
  CLI::App app{"Accepts fine-tuning jobs over gRPC, queues them, and runs them in workers."};
  app.name("traind");
  Flags flags;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto config = MakeConfig(flags);
  if (!config.ok()) return Fail(config.status());
  if (flags.check_config) {
    std::fputs(config::PrintConfig(*config).c_str(), stdout);
    return 0;
  }
  SetLogLevel(config::LogLevelOf(*config));
  return RunUntilSignal(*config);
}

}  // namespace traind::daemon
