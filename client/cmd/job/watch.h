// `trainctl job watch`
#pragma once

#include <string>

#include "client/cli/command.h"

namespace traind::client {

struct JobWatchOptions {
  CommonOptions common;
  std::string job;
  int64_t after_sequence = 0;
  bool exit_status = false;
};

absl::StatusOr<ExitCode> RunJobWatch(const JobWatchOptions& options, IoStreams& io, Client& client);

void AddJobWatch(CLI::App* parent, Command* selected,
                 RunFunction<JobWatchOptions> run = RunJobWatch);

}  // namespace traind::client
