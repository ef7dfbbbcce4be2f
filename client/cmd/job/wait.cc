#include "client/cmd/job/wait.h"

#include <algorithm>

#include "client/cmd/job/get.h"
#include "client/rpc/job_follower.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(500);
constexpr absl::Duration kGiveUpAfter = absl::Minutes(10);  // Without an answer of the daemon.

// The job once it has ended, or as it is at the deadline.
absl::StatusOr<v1::Job> WaitForEnd(const std::string& name, absl::Time deadline, Client& client) {
  v1::GetJobRequest request;
  request.set_name(name);
  TRAIND_ASSIGN_OR_RETURN(v1::Job job, client.GetJob(request));
  absl::Time heard = client.Now();
  while (ExitCodeOf(job.state()) == ExitCode::kPending && client.Now() < deadline) {
    if (!client.Pause(std::min(kPollInterval, deadline - client.Now()))) {
      return absl::CancelledError("interrupted");
    }
    auto answer = client.GetJob(request);
    if (answer.ok()) {
      job = *std::move(answer);
      heard = client.Now();
    } else if (!IsConnectionTrouble(answer.status()) || client.Now() - heard > kGiveUpAfter) {
      return answer.status();
    }
  }
  return job;
}

}  // namespace

absl::StatusOr<ExitCode> RunJobWait(const JobWaitOptions& options, IoStreams& io, Client& client) {
  const absl::Time deadline =
      options.common.timeout ? client.Now() + *options.common.timeout : absl::InfiniteFuture();
  ExitCode worst = ExitCode::kOk;
  for (const std::string& text : options.jobs) {
    TRAIND_ASSIGN_OR_RETURN(const std::string name, JobNameArgument(text));
    TRAIND_ASSIGN_OR_RETURN(const v1::Job job, WaitForEnd(name, deadline, client));
    if (options.common.output == OutputFormat::kTable) {
      *io.out << job.name() << "  " << v1::Job::State_Name(job.state()) << "\n";
    } else {
      TRAIND_RETURN_IF_ERROR(PrintJob(job, options.common.output, client.Now(), io));
    }
    worst = std::max(worst, ExitCodeOf(job.state()));
  }
  return worst;
}

void AddJobWait(CLI::App* parent, Command* selected, RunFunction<JobWaitOptions> run) {
  auto options = std::make_shared<JobWaitOptions>();
  CLI::App* app = parent->add_subcommand("wait", "Wait until jobs have ended");
  app->add_option("jobs", options->jobs, "Names or ids of the jobs")->required()->type_name("JOB");
  app->footer(
      "Exit code: 0 all succeeded, 9 one failed, 3 one was cancelled, 8 the --timeout is "
      "over; the highest of them.");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
