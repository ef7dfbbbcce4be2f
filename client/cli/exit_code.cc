#include "client/cli/exit_code.h"

#include "absl/strings/str_cat.h"

namespace traind::client {
namespace {

constexpr ExitCode kAll[] = {ExitCode::kOk,        ExitCode::kFailed,       ExitCode::kUsage,
                             ExitCode::kCancelled, ExitCode::kNotPermitted, ExitCode::kNotFound,
                             ExitCode::kPending,   ExitCode::kJobFailed};

absl::string_view Meaning(ExitCode code) {
  switch (code) {
    case ExitCode::kOk:
      return "success";
    case ExitCode::kFailed:
      return "the command failed";
    case ExitCode::kUsage:
      return "wrong use: unknown command, flag or value";
    case ExitCode::kCancelled:
      return "interrupted by the user, or the job was cancelled";
    case ExitCode::kNotPermitted:
      return "not authenticated or not permitted";
    case ExitCode::kNotFound:
      return "no such job, checkpoint or file";
    case ExitCode::kPending:
      return "the time is over and the job still goes on (wait, watch --timeout)";
    case ExitCode::kJobFailed:
      return "the job failed (wait, watch --exit-status, submit --watch)";
  }
  return "";
}

}  // namespace

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return ExitCode::kOk;
    case absl::StatusCode::kCancelled:
      return ExitCode::kCancelled;
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return ExitCode::kNotPermitted;
    case absl::StatusCode::kNotFound:
      return ExitCode::kNotFound;
    default:
      return ExitCode::kFailed;
  }
}

ExitCode ExitCodeOf(v1::Job::State state) {
  if (state == v1::Job::SUCCEEDED) return ExitCode::kOk;
  if (state == v1::Job::FAILED) return ExitCode::kJobFailed;
  if (state == v1::Job::CANCELLED) return ExitCode::kCancelled;
  return ExitCode::kPending;  // A state that is not known is not terminal.
}

std::string ExitCodeHelp() {
  std::string text = "Exit codes:\n";
  for (const ExitCode code : kAll) {
    absl::StrAppend(&text, "  ", static_cast<int>(code), "  ", Meaning(code), "\n");
  }
  return text;
}

}  // namespace traind::client
