// `trainctl checkpoint list`
#pragma once

#include <string>

#include "client/cli/command.h"

namespace traind::client {

struct CheckpointListOptions {
  CommonOptions common;
  std::string job;
};

absl::StatusOr<ExitCode> RunCheckpointList(const CheckpointListOptions& options, IoStreams& io,
                                           Client& client);

void AddCheckpointList(CLI::App* parent, Command* selected,
                       RunFunction<CheckpointListOptions> run = RunCheckpointList);

}  // namespace traind::client
