// `trainctl submit`
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/cli/command.h"

namespace traind::client {

struct SubmitOptions {
  CommonOptions common;
  std::string file;  // `-` is stdin.
  bool watch = false;
  bool dry_run = false;
  std::string job_id;
  std::string display_name;
  std::optional<int> priority;
  std::vector<std::string> labels;  // `key=value`
  std::string request_id;           // Made if empty.
};

absl::StatusOr<ExitCode> RunSubmit(const SubmitOptions& options, IoStreams& io, Client& client);

void AddSubmit(CLI::App* parent, Command* selected, RunFunction<SubmitOptions> run = RunSubmit);

}  // namespace traind::client
