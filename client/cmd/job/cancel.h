// `trainctl job cancel`
#pragma once

#include <string>
#include <vector>

#include "client/cli/command.h"

namespace traind::client {

struct JobCancelOptions {
  CommonOptions common;
  std::vector<std::string> jobs;
  std::string etag;  // Optional: refuse if the job has changed since.
};

absl::StatusOr<ExitCode> RunJobCancel(const JobCancelOptions& options, IoStreams& io,
                                      Client& client);

void AddJobCancel(CLI::App* parent, Command* selected,
                  RunFunction<JobCancelOptions> run = RunJobCancel);

}  // namespace traind::client
