// `trainctl job logs`
#pragma once

#include <string>

#include "client/cli/command.h"

namespace traind::client {

struct JobLogsOptions {
  CommonOptions common;
  std::string job;
  int attempt = 0;  // 0: the newest.
  bool follow = false;
  int64_t offset = 0;
};

absl::StatusOr<ExitCode> RunJobLogs(const JobLogsOptions& options, IoStreams& io, Client& client);

void AddJobLogs(CLI::App* parent, Command* selected, RunFunction<JobLogsOptions> run = RunJobLogs);

}  // namespace traind::client
