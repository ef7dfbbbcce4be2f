#include "client/cmd/job/list.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/output/format.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

constexpr int kMaxPage = 1000;

std::vector<std::string> StateNames() {
  std::vector<std::string> names;
  const auto* states = v1::Job::State_descriptor();
  for (int i = 0; i < states->value_count(); ++i) {
    if (states->value(i)->number() != 0) names.push_back(states->value(i)->name());
  }
  return names;
}

absl::StatusOr<v1::ListJobsRequest> MakeRequest(const JobListOptions& options) {
  v1::ListJobsRequest request;
  for (const std::string& name : options.states) {
    v1::Job::State state;
    if (!v1::Job::State_Parse(absl::AsciiStrToUpper(name), &state) || state == 0) {
      return FieldErrors(
          {{"--state", absl::StrCat("must be one of ", absl::StrJoin(StateNames(), ", "), "; got `",
                                    name, "`")}});
    }
    request.add_states(state);
  }
  for (const std::string& label : options.labels) {
    const auto [key, value] = SplitKeyValue(label);
    (*request.mutable_labels())[key] = value;
  }
  return request;
}

// All pages up to the limit; `next_page_token` is set if there are more jobs.
absl::StatusOr<v1::ListJobsResponse> ListPages(v1::ListJobsRequest request, int limit,
                                               Client& client) {
  v1::ListJobsResponse all;
  do {
    const int left = limit == 0 ? kMaxPage : limit - all.jobs_size();
    request.set_page_size(std::min(left, kMaxPage));
    request.set_page_token(all.next_page_token());
    TRAIND_ASSIGN_OR_RETURN(const v1::ListJobsResponse page, client.ListJobs(request));
    all.mutable_jobs()->MergeFrom(page.jobs());
    all.set_next_page_token(page.next_page_token());
  } while (!all.next_page_token().empty() && (limit == 0 || all.jobs_size() < limit));
  return all;
}

std::vector<std::string> Row(const v1::Job& job, absl::Time now) {
  const v1::Progress& progress = job.progress();
  const bool started = progress.step() > 0;
  const bool running = job.state() == v1::Job::RUNNING;
  return {
      job.name(),
      v1::Job::State_Name(job.state()),
      progress.total_steps() == 0 ? "" : absl::StrCat(progress.step(), "/", progress.total_steps()),
      started ? FormatNumber(progress.loss()) : "",
      progress.has_eval_loss() ? FormatNumber(progress.eval_loss()) : "",
      running && progress.eta_seconds() > 0 ? ShortDuration(absl::Seconds(progress.eta_seconds()))
                                            : "",
      ShortAge(job.create_time(), now),
      job.state() == v1::Job::QUEUED && !job.pending_reason().empty() ? job.pending_reason()
                                                                      : job.display_name()};
}

}  // namespace

absl::StatusOr<ExitCode> RunJobList(const JobListOptions& options, IoStreams& io, Client& client) {
  TRAIND_ASSIGN_OR_RETURN(const v1::ListJobsRequest request, MakeRequest(options));
  TRAIND_ASSIGN_OR_RETURN(const v1::ListJobsResponse jobs,
                          ListPages(request, options.limit, client));
  if (options.common.output == OutputFormat::kJson) {
    TRAIND_RETURN_IF_ERROR(PrintJson(io, jobs));
  } else if (options.common.output == OutputFormat::kName) {
    for (const v1::Job& job : jobs.jobs()) *io.out << job.name() << "\n";
  } else if (jobs.jobs_size() == 0) {
    *io.err << "No jobs.\n";
  } else {
    Table table({"NAME", "STATE", "STEP", "LOSS", "EVAL LOSS", "LEFT", "AGE", "TITLE"});
    for (const v1::Job& job : jobs.jobs()) table.AddRow(Row(job, client.Now()));
    table.Print(io);
  }
  if (!jobs.next_page_token().empty()) {
    *io.err << "There are more jobs; --limit 0 shows all.\n";
  }
  return ExitCode::kOk;
}

void AddJobList(CLI::App* parent, Command* selected, RunFunction<JobListOptions> run) {
  auto options = std::make_shared<JobListOptions>();
  CLI::App* app = parent->add_subcommand("list", "List jobs, newest first");
  app->add_option("--state", options->states, "Only jobs in this state; may be repeated")
      ->type_name("STATE")
      ->allow_extra_args(false);
  app->add_option("--label", options->labels, "Only jobs with this label; may be repeated")
      ->check(KeyValueValidator())
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--limit", options->limit, "Jobs at most; 0 shows all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N")
      ->capture_default_str();
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
