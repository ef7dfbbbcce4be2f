#include "client/cmd/job/get.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/output/error_text.h"
#include "client/output/format.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"

namespace traind::client {
namespace {

std::string Labels(const v1::Job& job) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : job.labels()) pairs.push_back(absl::StrCat(key, "=", value));
  std::sort(pairs.begin(), pairs.end());
  return absl::StrJoin(pairs, ", ");
}

std::string Step(const v1::Progress& progress) {
  if (progress.total_steps() == 0) return "";
  return absl::StrFormat("%d of %d, epoch %.2f", progress.step(), progress.total_steps(),
                         progress.epoch());
}

std::string AttemptText(const v1::Attempt& attempt) {
  if (attempt.name().empty()) return "";
  return absl::StrCat(attempt.name(), " on ", attempt.node(), " ",
                      absl::StrJoin(attempt.devices(), ","), ", ",
                      v1::Attempt::Phase_Name(attempt.phase()));
}

void AddProgress(const v1::Job& job, KeyValues* lines) {
  const v1::Progress& progress = job.progress();
  lines->Add("step", Step(progress));
  if (progress.step() > 0) lines->Add("loss", FormatNumber(progress.loss()));
  if (progress.has_eval_loss()) lines->Add("eval loss", FormatNumber(progress.eval_loss()));
  if (progress.tokens_per_second() > 0) {
    lines->Add("tokens/s", FormatNumber(progress.tokens_per_second()));
  }
  if (progress.peak_memory_bytes() > 0) {
    lines->Add("peak memory", FormatBytes(progress.peak_memory_bytes()));
  }
  if (progress.eta_seconds() > 0 && !job.has_end_time()) {
    lines->Add("left", ShortDuration(absl::Seconds(progress.eta_seconds())));
  }
}

void AddError(const v1::Job& job, KeyValues* lines) {
  if (!job.has_error()) return;
  const absl::Status error = FromRpcStatus(job.error());
  lines->Add("error", std::string(error.message()));
  if (ReasonOf(error) != Reason::kUnspecified) {
    lines->Add("reason", std::string(ReasonName(ReasonOf(error))));
  }
  lines->Add("hint", std::string(HintFor(ReasonOf(error))));
}

}  // namespace

absl::Status PrintJob(const v1::Job& job, OutputFormat format, absl::Time now,
                      const IoStreams& io) {
  if (format == OutputFormat::kJson) return PrintJson(io, job);
  if (format == OutputFormat::kName) {
    *io.out << job.name() << "\n";
    return absl::OkStatus();
  }
  KeyValues lines;
  lines.Add("name", job.name());
  lines.Add("title", job.display_name());
  lines.Add("state", v1::Job::State_Name(job.state()));
  if (job.state() == v1::Job::QUEUED) lines.Add("waits because", job.pending_reason());
  lines.Add("base model", job.spec().base_model().path());
  lines.Add("attempt", AttemptText(job.attempt()));
  AddProgress(job, &lines);
  lines.Add("priority", absl::StrCat(job.priority()));
  lines.Add("labels", Labels(job));
  lines.Add("owner", job.owner());
  lines.Add("created", absl::StrCat(ShortTime(job.create_time()), ", ",
                                    ShortAge(job.create_time(), now), " ago"));
  if (job.has_end_time()) lines.Add("ended", ShortTime(job.end_time()));
  lines.Add("adapter", job.adapter_path());
  AddError(job, &lines);
  lines.Print(io);
  return absl::OkStatus();
}

absl::StatusOr<ExitCode> RunJobGet(const JobGetOptions& options, IoStreams& io, Client& client) {
  v1::GetJobRequest request;
  TRAIND_ASSIGN_OR_RETURN(*request.mutable_name(), JobNameArgument(options.job));
  TRAIND_ASSIGN_OR_RETURN(const v1::Job job, client.GetJob(request));
  TRAIND_RETURN_IF_ERROR(PrintJob(job, options.common.output, client.Now(), io));
  return ExitCode::kOk;
}

void AddJobGet(CLI::App* parent, Command* selected, RunFunction<JobGetOptions> run) {
  auto options = std::make_shared<JobGetOptions>();
  CLI::App* app = parent->add_subcommand("get", "Show one job");
  app->add_option("job", options->job, "Name or id of the job")->required()->type_name("JOB");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
