// `trainctl job wait`
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace traind::client {

struct JobWaitOptions {
  CommonOptions common;
  std::vector<std::string> jobs;
};

absl::StatusOr<ExitCode> RunJobWait(const JobWaitOptions& options, IoStreams& io, Client& client);

void AddJobWait(CLI::App* parent, Command* selected, RunFunction<JobWaitOptions> run = RunJobWait);

}  // namespace traind::client
