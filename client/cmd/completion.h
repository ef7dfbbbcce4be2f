// `trainctl completion`
#pragma once

#include <string>

#include "client/cli/command.h"

namespace traind::client {

struct CompletionOptions {
  CommonOptions common;
  std::string shell;  // `bash`, `zsh` or `fish`.
  const CLI::App* root = nullptr;
};

absl::StatusOr<ExitCode> RunCompletion(const CompletionOptions& options, IoStreams& io,
                                       Client& client);

// The script is made from the commands and flags of `parent`, which must outlive the command.
void AddCompletion(CLI::App* parent, Command* selected,
                   RunFunction<CompletionOptions> run = RunCompletion);

}  // namespace traind::client
