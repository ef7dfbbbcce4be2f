#include "client/cmd/server/info.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/output/format.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "common/status/errors.h"

namespace traind::client {

absl::StatusOr<ExitCode> RunServerInfo(const ServerInfoOptions& options, IoStreams& io,
                                       Client& client) {
  TRAIND_ASSIGN_OR_RETURN(const v1::ServerInfo info, client.GetServerInfo());
  if (options.common.output == OutputFormat::kJson) {
    TRAIND_RETURN_IF_ERROR(PrintJson(io, info));
    return ExitCode::kOk;
  }
  KeyValues lines;
  lines.Add("version", info.version());
  if (info.has_start_time()) {
    lines.Add("started", absl::StrCat(ShortTime(info.start_time()), ", ",
                                      ShortAge(info.start_time(), client.Now()), " ago"));
  }
  lines.Add("state folder", info.state_dir());
  lines.Add("listens on", absl::StrJoin(info.addresses(), ", "));
  lines.Add("jobs may read", absl::StrJoin(info.allowed_roots(), ", "));
  lines.Add("metrics", info.metrics_address());
  lines.Add("you are", info.caller());
  lines.Print(io);
  return ExitCode::kOk;
}

void AddServerInfo(CLI::App* parent, Command* selected, RunFunction<ServerInfoOptions> run) {
  auto options = std::make_shared<ServerInfoOptions>();
  CLI::App* app =
      parent->add_subcommand("info", "Show the daemon's version, folders and addresses");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
