#include "client/cmd/checkpoint/download.h"

#include "absl/strings/str_cat.h"
#include "client/cmd/checkpoint/checkpoint_download.h"
#include "client/output/format.h"
#include "client/output/json.h"
#include "client/rpc/job_follower.h"
#include "common/names/resource_name.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

constexpr int kTriesWithoutProgress = 20;

absl::StatusOr<std::string> DefaultFolder(const std::string& name) {
  TRAIND_ASSIGN_OR_RETURN(const CheckpointId id, ParseCheckpointName(name));
  return absl::StrCat(id.job_name.substr(id.job_name.find('/') + 1), "-", id.checkpoint_id);
}

// Streams until every file is there; a broken stream goes on where it broke.
absl::Status Fetch(CheckpointDownload& download, IoStreams& io, Client& client) {
  Backoff backoff;
  int tries = 0;
  int64_t best = download.bytes_done();
  while (!download.complete()) {
    v1::DownloadCheckpointRequest request;
    request.set_name(download.checkpoint().name());
    request.set_offset(download.bytes_done());
    absl::Status written;
    const absl::Status status =
        client.DownloadCheckpoint(request, [&](const v1::CheckpointChunk& chunk) {
          written = download.Append(chunk);
          return written.ok();
        });
    TRAIND_RETURN_IF_ERROR(written);
    if (download.complete()) break;
    if (!status.ok() && !IsConnectionTrouble(status)) return status;
    const bool progress = download.bytes_done() > best;
    best = std::max(best, download.bytes_done());
    tries = progress ? 0 : tries + 1;
    if (progress) backoff.Reset();
    if (tries == kTriesWithoutProgress) {
      return status.ok() ? absl::UnavailableError("the daemon ends the download too early")
                         : status;
    }
    *io.err << "connection lost at " << FormatBytes(download.bytes_done()) << "; trying again …\n";
    if (!client.Pause(backoff.Next())) return absl::CancelledError("interrupted");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExitCode> RunCheckpointDownload(const CheckpointDownloadOptions& options,
                                               IoStreams& io, Client& client) {
  v1::GetCheckpointRequest request;
  TRAIND_ASSIGN_OR_RETURN(*request.mutable_name(), CheckpointNameArgument(options.checkpoint));
  std::string folder = options.to;
  if (folder.empty()) {
    TRAIND_ASSIGN_OR_RETURN(folder, DefaultFolder(request.name()));
  }
  if (FileExists(folder)) {
    return Error(absl::StatusCode::kAlreadyExists, Reason::kUnspecified,
                 absl::StrCat(folder, " exists already; choose another folder with --to"),
                 {{"path", folder}});
  }
  TRAIND_ASSIGN_OR_RETURN(const v1::Checkpoint checkpoint, client.GetCheckpoint(request));
  TRAIND_ASSIGN_OR_RETURN(CheckpointDownload download,
                          CheckpointDownload::Open(checkpoint, folder));
  if (download.bytes_done() > 0) {
    *io.err << "going on after " << FormatBytes(download.bytes_done()) << " of "
            << FormatBytes(checkpoint.size_bytes()) << "\n";
  }
  TRAIND_RETURN_IF_ERROR(Fetch(download, io, client));
  TRAIND_RETURN_IF_ERROR(download.Finish());
  if (options.common.output == OutputFormat::kJson) {
    TRAIND_RETURN_IF_ERROR(PrintJson(io, checkpoint));
  } else if (options.common.output == OutputFormat::kName) {
    *io.out << folder << "\n";
  } else {
    *io.out << folder << "  " << checkpoint.files_size() << " files, "
            << FormatBytes(download.bytes_done()) << ", SHA-256 verified\n";
  }
  return ExitCode::kOk;
}

void AddCheckpointDownload(CLI::App* parent, Command* selected,
                           RunFunction<CheckpointDownloadOptions> run) {
  auto options = std::make_shared<CheckpointDownloadOptions>();
  CLI::App* app =
      parent->add_subcommand("download", "Copy a checkpoint or the adapter to this machine");
  app->add_option("checkpoint", options->checkpoint,
                  "JOB for its adapter, JOB/STEP for a checkpoint, or a full name")
      ->required()
      ->type_name("CHECKPOINT");
  app->add_option("--to", options->to, "New folder; JOB-CHECKPOINT if not given")
      ->type_name("FOLDER");
  app->footer(
      "Files appear under a temporary name until every SHA-256 is right; the same command "
      "goes on with what an interrupted one left.");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
