#include "client/cmd/job/delete.h"

#include "common/status/errors.h"

namespace traind::client {

absl::StatusOr<ExitCode> RunJobDelete(const JobDeleteOptions& options, IoStreams& io,
                                      Client& client) {
  for (const std::string& text : options.jobs) {
    v1::DeleteJobRequest request;
    TRAIND_ASSIGN_OR_RETURN(*request.mutable_name(), JobNameArgument(text));
    request.set_etag(options.etag);
    TRAIND_RETURN_IF_ERROR(client.DeleteJob(request));
    if (options.common.output == OutputFormat::kName) {
      *io.out << request.name() << "\n";
    } else if (options.common.output == OutputFormat::kTable) {
      *io.out << request.name() << "  deleted\n";
    }
  }
  return ExitCode::kOk;
}

void AddJobDelete(CLI::App* parent, Command* selected, RunFunction<JobDeleteOptions> run) {
  auto options = std::make_shared<JobDeleteOptions>();
  CLI::App* app = parent->add_subcommand(
      "delete", "Remove ended jobs with their events, checkpoints and adapters");
  app->add_option("jobs", options->jobs, "Names or ids of the jobs")->required()->type_name("JOB");
  app->add_option("--etag", options->etag, "Refuse if the job has another etag");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
