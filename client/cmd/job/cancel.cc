#include "client/cmd/job/cancel.h"

#include "client/cmd/job/get.h"
#include "common/status/errors.h"

namespace traind::client {

absl::StatusOr<ExitCode> RunJobCancel(const JobCancelOptions& options, IoStreams& io,
                                      Client& client) {
  for (const std::string& text : options.jobs) {
    v1::CancelJobRequest request;
    TRAIND_ASSIGN_OR_RETURN(*request.mutable_name(), JobNameArgument(text));
    request.set_etag(options.etag);
    TRAIND_ASSIGN_OR_RETURN(const v1::Job job, client.CancelJob(request));
    if (options.common.output == OutputFormat::kTable) {
      *io.out << job.name() << "  " << v1::Job::State_Name(job.state()) << "\n";
    } else {
      TRAIND_RETURN_IF_ERROR(PrintJob(job, options.common.output, client.Now(), io));
    }
  }
  return ExitCode::kOk;
}

void AddJobCancel(CLI::App* parent, Command* selected, RunFunction<JobCancelOptions> run) {
  auto options = std::make_shared<JobCancelOptions>();
  CLI::App* app = parent->add_subcommand("cancel", "Ask jobs to stop");
  app->add_option("jobs", options->jobs, "Names or ids of the jobs")->required()->type_name("JOB");
  app->add_option("--etag", options->etag, "Refuse if the job has another etag");
  app->footer("A job that has ended stays as it is. `trainctl job wait` waits for the end.");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
