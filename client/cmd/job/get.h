// `trainctl job get`
#pragma once

#include <string>

#include "client/cli/command.h"

namespace traind::client {

struct JobGetOptions {
  CommonOptions common;
  std::string job;
};

absl::StatusOr<ExitCode> RunJobGet(const JobGetOptions& options, IoStreams& io, Client& client);

void AddJobGet(CLI::App* parent, Command* selected, RunFunction<JobGetOptions> run = RunJobGet);

// One job in the chosen format, as `job get` and the commands that answer with a job print it.
absl::Status PrintJob(const v1::Job& job, OutputFormat format, absl::Time now, const IoStreams& io);

}  // namespace traind::client
