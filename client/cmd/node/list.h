// `trainctl node list`
#pragma once

#include "client/cli/command.h"

namespace traind::client {

struct NodeListOptions {
  CommonOptions common;
};

absl::StatusOr<ExitCode> RunNodeList(const NodeListOptions& options, IoStreams& io, Client& client);

void AddNodeList(CLI::App* parent, Command* selected,
                 RunFunction<NodeListOptions> run = RunNodeList);

}  // namespace traind::client
