// `trainctl job list`
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace traind::client {

struct JobListOptions {
  CommonOptions common;
  std::vector<std::string> states;
  std::vector<std::string> labels;  // `key=value`
  int limit = 50;                   // Jobs at most; 0 means all.
};

absl::StatusOr<ExitCode> RunJobList(const JobListOptions& options, IoStreams& io, Client& client);

void AddJobList(CLI::App* parent, Command* selected, RunFunction<JobListOptions> run = RunJobList);

}  // namespace traind::client
