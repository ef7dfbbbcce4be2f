// How trainctl ends: the only list, from which the help text is made.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "traind/v1/job.pb.h"

namespace traind::client {

enum class ExitCode {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kCancelled = 3,
  kNotPermitted = 4,
  kNotFound = 5,
  kPending = 8,
  kJobFailed = 9,
};

// The code of a command that ended with `status`.
ExitCode ExitCodeOf(const absl::Status& status);

// The code that tells how a job ended; kPending while it has not.
ExitCode ExitCodeOf(v1::Job::State state);

// One line each, for the help.
std::string ExitCodeHelp();

}  // namespace traind::client
