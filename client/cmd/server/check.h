// `trainctl server check`
#pragma once

#include "client/cli/command.h"

namespace traind::client {

struct ServerCheckOptions {
  CommonOptions common;
};

absl::StatusOr<ExitCode> RunServerCheck(const ServerCheckOptions& options, IoStreams& io,
                                        Client& client);

void AddServerCheck(CLI::App* parent, Command* selected,
                    RunFunction<ServerCheckOptions> run = RunServerCheck);

}  // namespace traind::client
