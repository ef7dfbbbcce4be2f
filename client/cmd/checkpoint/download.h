// `trainctl checkpoint download`
#pragma once

#include <string>

#include "client/cli/command.h"

namespace traind::client {

struct CheckpointDownloadOptions {
  CommonOptions common;
  std::string checkpoint;
  std::string to;  // The new folder; empty: `{job}-{checkpoint}`.
};

absl::StatusOr<ExitCode> RunCheckpointDownload(const CheckpointDownloadOptions& options,
                                               IoStreams& io, Client& client);

void AddCheckpointDownload(CLI::App* parent, Command* selected,
                           RunFunction<CheckpointDownloadOptions> run = RunCheckpointDownload);

}  // namespace traind::client
