// `trainctl server info`
#pragma once

#include "client/cli/command.h"

namespace traind::client {

struct ServerInfoOptions {
  CommonOptions common;
};

absl::StatusOr<ExitCode> RunServerInfo(const ServerInfoOptions& options, IoStreams& io,
                                       Client& client);

void AddServerInfo(CLI::App* parent, Command* selected,
                   RunFunction<ServerInfoOptions> run = RunServerInfo);

}  // namespace traind::client
