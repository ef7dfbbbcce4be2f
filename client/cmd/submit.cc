#include "client/cmd/submit.h"

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/cmd/job/follow.h"
#include "client/cmd/job/get.h"
#include "client/output/json.h"
#include "common/jobspec/job_json.h"
#include "common/names/resource_name.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

// A UUID4 from the system's random source.
std::string NewRequestId() {
  std::random_device source;
  std::uniform_int_distribution<uint32_t> any;
  const uint32_t a = any(source), b = any(source), c = any(source), d = any(source);
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%04x%08x", a, b >> 16, b & 0xfff,
                         (c >> 16 & 0x3fff) | 0x8000, c & 0xffff, d);
}

absl::StatusOr<jobspec::JobFile> ReadFileOrStdin(const std::string& file, std::istream& in) {
  if (file != "-") return jobspec::ReadJobFile(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  return jobspec::ParseJob(text, "stdin", std::filesystem::current_path().string());
}

void ApplyFlags(const SubmitOptions& options, v1::Job* job) {
  if (!options.display_name.empty()) job->set_display_name(options.display_name);
  if (options.priority) job->set_priority(*options.priority);
  for (const std::string& label : options.labels) {
    const auto [key, value] = SplitKeyValue(label);
    (*job->mutable_labels())[key] = value;
  }
}

// `error` with another message.
absl::Status WithMessage(const absl::Status& error, const std::string& message) {
  absl::Status result(error.code(), message);
  error.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

// `error` with each field as `rename` says, and with the headline `headline` if it lists fields.
absl::Status RenameFields(const absl::Status& error, const std::string& headline,
                          const std::function<std::string(const std::string&)>& rename) {
  std::vector<FieldViolation> violations = FieldViolationsOf(error);
  for (FieldViolation& violation : violations) violation.field = rename(violation.field);
  if (!violations.empty()) return WithMessage(FieldErrors(violations), headline);
  // Another error about one field begins with its path.
  absl::string_view rest = error.message();
  const std::string field(rest.substr(0, rest.find(": ")));
  if (!absl::StartsWith(field, "job.") || !absl::ConsumePrefix(&rest, field)) return error;
  return WithMessage(error, absl::StrCat(rename(field), rest));
}

std::string Headline(const SubmitOptions& options, const absl::Status& error) {
  const size_t count = FieldViolationsOf(error).size();
  return absl::StrCat(options.file == "-" ? "stdin" : options.file, " has ",
                      count == 1 ? "a wrong field" : absl::StrCat(count, " wrong fields"));
}

// The field as the user wrote it: in the file, or as a flag.
std::string FieldForUser(const SubmitOptions& options, const jobspec::JobFile& file,
                         const std::string& field) {
  if (field == "job_id") return options.job_id.empty() ? "name" : "--job-id";
  if (field == "request_id") return "--request-id";
  if (field == "job.priority" && options.priority) return "--priority";
  if (field == "job.display_name" && !options.display_name.empty()) return "--name";
  if (absl::StartsWith(field, "job.labels") && !options.labels.empty()) {
    return absl::StrCat(jobspec::PathInFile(file, field), " (or --label)");
  }
  return jobspec::PathInFile(file, field);
}

absl::StatusOr<v1::CreateJobRequest> MakeRequest(const SubmitOptions& options,
                                                 const jobspec::JobFile& file) {
  v1::CreateJobRequest request;
  *request.mutable_job() = file.job;
  ApplyFlags(options, request.mutable_job());
  request.set_job_id(options.job_id);
  if (options.job_id.empty() && !file.job.name().empty()) {
    TRAIND_ASSIGN_OR_RETURN(*request.mutable_job_id(), ParseJobName(file.job.name(), "name"));
  }
  request.mutable_job()->clear_name();
  request.set_request_id(options.request_id.empty() ? NewRequestId() : options.request_id);
  request.set_validate_only(options.dry_run);
  return request;
}

}  // namespace

absl::StatusOr<ExitCode> RunSubmit(const SubmitOptions& options, IoStreams& io, Client& client) {
  const auto file = ReadFileOrStdin(options.file, *io.in);
  if (!file.ok()) {
    return RenameFields(file.status(), Headline(options, file.status()),
                        [](const std::string& field) { return field; });
  }
  TRAIND_ASSIGN_OR_RETURN(const v1::CreateJobRequest request, MakeRequest(options, *file));
  const auto job = client.CreateJob(request);
  if (!job.ok()) {
    return RenameFields(
        job.status(), Headline(options, job.status()),
        [&](const std::string& field) { return FieldForUser(options, *file, field); });
  }
  if (options.dry_run) {
    TRAIND_RETURN_IF_ERROR(PrintJson(io, *job));
    return ExitCode::kOk;
  }
  if (options.common.output != OutputFormat::kTable) {
    const auto format = options.common.output;
    if (!options.watch || format == OutputFormat::kName) {
      TRAIND_RETURN_IF_ERROR(PrintJob(*job, format, client.Now(), io));
    }
  } else if (!options.watch) {
    *io.out << job->name() << "  " << v1::Job::State_Name(job->state()) << "\n";
  }
  if (!options.watch) return ExitCode::kOk;
  FollowJobOptions follow;
  follow.common = options.common;
  follow.name = job->name();
  follow.exit_status = true;
  return ShowUntilEnd(follow, io, client);
}

void AddSubmit(CLI::App* parent, Command* selected, RunFunction<SubmitOptions> run) {
  auto options = std::make_shared<SubmitOptions>();
  CLI::App* app = parent->add_subcommand("submit", "Create a job from a file");
  app->add_option("file", options->file, "JSON of the job; `-` reads stdin")
      ->required()
      ->type_name("FILE");
  app->add_flag("-w,--watch", options->watch, "Show the job until it ends, and fail if it fails");
  app->add_flag("--dry-run", options->dry_run,
                "Check everything and print the job with every default, but create nothing");
  app->add_option("--job-id", options->job_id, "Id of the job: a-z, 0-9 and -, at most 63")
      ->type_name("ID");
  app->add_option("--name", options->display_name, "Title for people")->type_name("TITLE");
  app->add_option("--priority", options->priority, "0 to 100; higher runs first")->type_name("N");
  app->add_option("--label", options->labels, "Label of the job; may be repeated")
      ->check(KeyValueValidator())
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app->add_option("--request-id", options->request_id,
                  "UUID4; a second submit with the same one creates nothing")
      ->type_name("UUID");
  app->footer("Relative paths in the file count from its folder. Flags win over the file.");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
