#include "client/cmd/server/check.h"

#include "client/output/json.h"
#include "client/output/table.h"
#include "common/status/errors.h"

namespace traind::client {

absl::StatusOr<ExitCode> RunServerCheck(const ServerCheckOptions& options, IoStreams& io,
                                        Client& client) {
  TRAIND_ASSIGN_OR_RETURN(const v1::CheckEnvironmentResponse response, client.CheckEnvironment());
  bool failed = false;
  Table table({"CHECK", "RESULT", "FOUND"});
  for (const v1::EnvironmentCheck& check : response.checks()) {
    failed = failed || check.result() == v1::EnvironmentCheck::FAILED;
    table.AddRow(
        {check.name(), v1::EnvironmentCheck::Result_Name(check.result()), check.message()});
  }
  if (options.common.output == OutputFormat::kJson) {
    TRAIND_RETURN_IF_ERROR(PrintJson(io, response));
  } else {
    table.Print(io);
  }
  return failed ? ExitCode::kFailed : ExitCode::kOk;
}

void AddServerCheck(CLI::App* parent, Command* selected, RunFunction<ServerCheckOptions> run) {
  auto options = std::make_shared<ServerCheckOptions>();
  CLI::App* app =
      parent->add_subcommand("check", "Check what a job would need; fails if something is missing");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
