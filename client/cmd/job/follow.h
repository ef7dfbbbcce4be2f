// Shows a job until it ends; for `job watch` and `submit --watch`.
#pragma once

#include <string>

#include "client/cli/command.h"

namespace traind::client {

struct FollowJobOptions {
  CommonOptions common;
  std::string name;            // `jobs/{job}`
  int64_t after_sequence = 0;  // Show only what came after it.
  bool exit_status = false;    // Whether a failed or cancelled job makes the command fail.
};

// With table output lines and a summary; with JSON one event a line. An interruption leaves the job
// alone and says how to come back. --timeout ends it with kPending.
absl::StatusOr<ExitCode> ShowUntilEnd(const FollowJobOptions& options, IoStreams& io,
                                      Client& client);

}  // namespace traind::client
