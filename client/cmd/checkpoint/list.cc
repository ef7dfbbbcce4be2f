#include "client/cmd/checkpoint/list.h"

#include "absl/strings/str_cat.h"
#include "client/output/format.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

absl::StatusOr<v1::ListCheckpointsResponse> ListPages(const std::string& job, Client& client) {
  v1::ListCheckpointsResponse all;
  v1::ListCheckpointsRequest request;
  request.set_parent(job);
  do {
    request.set_page_token(all.next_page_token());
    TRAIND_ASSIGN_OR_RETURN(const v1::ListCheckpointsResponse page,
                            client.ListCheckpoints(request));
    all.mutable_checkpoints()->MergeFrom(page.checkpoints());
    all.set_next_page_token(page.next_page_token());
  } while (!all.next_page_token().empty());
  return all;
}

}  // namespace

absl::StatusOr<ExitCode> RunCheckpointList(const CheckpointListOptions& options, IoStreams& io,
                                           Client& client) {
  TRAIND_ASSIGN_OR_RETURN(const std::string job, JobNameArgument(options.job));
  TRAIND_ASSIGN_OR_RETURN(const v1::ListCheckpointsResponse checkpoints, ListPages(job, client));
  if (options.common.output == OutputFormat::kJson) {
    TRAIND_RETURN_IF_ERROR(PrintJson(io, checkpoints));
  } else if (options.common.output == OutputFormat::kName) {
    for (const auto& checkpoint : checkpoints.checkpoints()) *io.out << checkpoint.name() << "\n";
  } else if (checkpoints.checkpoints_size() == 0) {
    *io.err << job << " has no checkpoints.\n";
  } else {
    Table table({"NAME", "STEP", "SIZE", "FILES", "AGE", "PATH"});
    for (const v1::Checkpoint& checkpoint : checkpoints.checkpoints()) {
      table.AddRow({checkpoint.name(), absl::StrCat(checkpoint.step()),
                    FormatBytes(checkpoint.size_bytes()), absl::StrCat(checkpoint.files_size()),
                    ShortAge(checkpoint.create_time(), client.Now()), checkpoint.path()});
    }
    table.Print(io);
  }
  return ExitCode::kOk;
}

void AddCheckpointList(CLI::App* parent, Command* selected,
                       RunFunction<CheckpointListOptions> run) {
  auto options = std::make_shared<CheckpointListOptions>();
  CLI::App* app = parent->add_subcommand("list", "List a job's checkpoints and its adapter");
  app->add_option("job", options->job, "Name or id of the job")->required()->type_name("JOB");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
