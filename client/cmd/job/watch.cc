#include "client/cmd/job/watch.h"

#include "client/cmd/job/follow.h"
#include "common/status/errors.h"

namespace traind::client {

absl::StatusOr<ExitCode> RunJobWatch(const JobWatchOptions& options, IoStreams& io,
                                     Client& client) {
  FollowJobOptions follow;
  follow.common = options.common;
  follow.after_sequence = options.after_sequence;
  follow.exit_status = options.exit_status;
  TRAIND_ASSIGN_OR_RETURN(follow.name, JobNameArgument(options.job));
  // A missing job or daemon is told at once; only what breaks later is tried again.
  v1::GetJobRequest request;
  request.set_name(follow.name);
  TRAIND_RETURN_IF_ERROR(client.GetJob(request).status());
  return ShowUntilEnd(follow, io, client);
}

void AddJobWatch(CLI::App* parent, Command* selected, RunFunction<JobWatchOptions> run) {
  auto options = std::make_shared<JobWatchOptions>();
  CLI::App* app = parent->add_subcommand("watch", "Show what a job does until it ends");
  app->add_option("job", options->job, "Name or id of the job")->required()->type_name("JOB");
  app->add_option("--after", options->after_sequence, "Show only events after this number")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SEQUENCE");
  app->add_flag("--exit-status", options->exit_status, "Fail if the job fails or is cancelled");
  app->footer(
      "Ctrl-C stops watching, not the job. A lost connection is taken up again where it "
      "broke.");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
