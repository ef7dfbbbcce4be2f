// `trainctl job delete`
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace traind::client {

struct JobDeleteOptions {
  CommonOptions common;
  std::vector<std::string> jobs;
  std::string etag;  // Optional: refuse if the job has changed since.
};

absl::StatusOr<ExitCode> RunJobDelete(const JobDeleteOptions& options, IoStreams& io,
                                      Client& client);

void AddJobDelete(CLI::App* parent, Command* selected,
                  RunFunction<JobDeleteOptions> run = RunJobDelete);

}  // namespace traind::client
