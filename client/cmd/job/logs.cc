#include "client/cmd/job/logs.h"

#include "client/rpc/job_follower.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

constexpr absl::Duration kGiveUpAfter = absl::Minutes(10);  // Without a byte from the daemon.

}  // namespace

absl::StatusOr<ExitCode> RunJobLogs(const JobLogsOptions& options, IoStreams& io, Client& client) {
  v1::ReadLogsRequest request;
  TRAIND_ASSIGN_OR_RETURN(*request.mutable_name(), JobNameArgument(options.job));
  request.set_attempt(options.attempt);
  request.set_follow(options.follow);
  request.set_offset(options.offset);
  Backoff backoff;
  bool heard_once = false;
  absl::Time heard = client.Now();
  for (;;) {
    const absl::Status status = client.ReadLogs(request, [&](const v1::LogChunk& chunk) {
      *io.out << chunk.data() << std::flush;
      // A new try goes on in the same attempt, even if a newer one has begun.
      request.set_attempt(chunk.attempt());
      request.set_offset(chunk.next_offset());
      heard = client.Now();
      heard_once = true;
      backoff.Reset();
      return true;
    });
    if (status.ok()) return ExitCode::kOk;
    const bool again = heard_once && IsConnectionTrouble(status);
    if (!again || client.Now() - heard > kGiveUpAfter) return status;
    if (!client.Pause(backoff.Next())) return absl::CancelledError("interrupted");
  }
}

void AddJobLogs(CLI::App* parent, Command* selected, RunFunction<JobLogsOptions> run) {
  auto options = std::make_shared<JobLogsOptions>();
  CLI::App* app = parent->add_subcommand("logs", "Print what a job's worker wrote to stderr");
  app->add_option("job", options->job, "Name or id of the job")->required()->type_name("JOB");
  app->add_option("--attempt", options->attempt, "Number of the attempt; the newest if not given")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app->add_flag("-f,--follow", options->follow, "Go on until the attempt ends");
  app->add_option("--offset", options->offset, "Begin at this byte")
      ->check(CLI::NonNegativeNumber)
      ->type_name("BYTE");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
