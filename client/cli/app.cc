#include "client/cli/app.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/command.h"
#include "client/cmd/checkpoint/download.h"
#include "client/cmd/checkpoint/list.h"
#include "client/cmd/completion.h"
#include "client/cmd/job/cancel.h"
#include "client/cmd/job/delete.h"
#include "client/cmd/job/get.h"
#include "client/cmd/job/list.h"
#include "client/cmd/job/logs.h"
#include "client/cmd/job/wait.h"
#include "client/cmd/job/watch.h"
#include "client/cmd/node/list.h"
#include "client/cmd/server/check.h"
#include "client/cmd/server/info.h"
#include "client/cmd/submit.h"
#include "client/output/error_text.h"
#include "client/rpc/endpoint.h"
#include "client/rpc/grpc_client.h"
#include "common/jobspec/nearest_name.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

struct GlobalFlags {
  std::string server;
  std::string token_file;
  std::string ca_file;
  std::string output = "table";
  std::string timeout;
  bool debug = false;
};

// A positive time such as `30s`; a number alone counts seconds.
std::optional<absl::Duration> ParseTimeout(const std::string& text) {
  absl::Duration timeout;
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds)) {
    timeout = absl::Seconds(seconds);
  } else if (!absl::ParseDuration(text, &timeout)) {
    return std::nullopt;
  }
  return timeout > absl::ZeroDuration() ? std::make_optional(timeout) : std::nullopt;
}

std::string CheckTimeout(const std::string& text) {
  return ParseTimeout(text) ? "" : "must be a time such as 30s, 5m or 1h; got `" + text + "`";
}

void AddGlobalFlags(CLI::App* app, GlobalFlags* flags) {
  app->set_version_flag("--version", "trainctl " TRAIND_VERSION);
  app->add_option("--server", flags->server, "unix:PATH or HOST:PORT")->type_name("ADDRESS");
  app->add_option("--token-file", flags->token_file, "File that holds the token for TCP")
      ->type_name("FILE");
  app->add_option("--ca-file", flags->ca_file, "PEM file of the authority of the daemon's TLS")
      ->type_name("FILE");
  app->add_option("-o,--output", flags->output, "table, json or name")
      ->check(CLI::IsMember({"table", "json", "name"}).description(""))
      ->type_name("FORMAT");
  app->add_option("--timeout", flags->timeout, "Such as 30s or 5m: of one call, a wait or a watch")
      ->check(CLI::Validator(CheckTimeout, ""))
      ->type_name("DURATION");
  app->add_flag("--debug", flags->debug, "Show all details of errors");
}

void AddCommands(CLI::App* app, Command* selected) {
  AddSubmit(app, selected);
  CLI::App* job = app->add_subcommand("job", "Jobs: list, get, watch, wait, logs, cancel, delete");
  AddJobList(job, selected);
  AddJobGet(job, selected);
  AddJobWatch(job, selected);
  AddJobWait(job, selected);
  AddJobLogs(job, selected);
  AddJobCancel(job, selected);
  AddJobDelete(job, selected);
  CLI::App* checkpoint = app->add_subcommand("checkpoint", "Checkpoints and finished adapters");
  AddCheckpointList(checkpoint, selected);
  AddCheckpointDownload(checkpoint, selected);
  CLI::App* node = app->add_subcommand("node", "Machines and their devices");
  AddNodeList(node, selected);
  CLI::App* server = app->add_subcommand("server", "The daemon itself");
  AddServerInfo(server, selected);
  AddServerCheck(server, selected);
  AddCompletion(app, selected);
}

// Global flags may stand anywhere, and a noun needs a verb.
void Finish(CLI::App* app) {
  for (CLI::App* command : app->get_subcommands({})) {
    command->fallthrough();
    Finish(command);
  }
  if (!app->get_subcommands({}).empty()) app->require_subcommand(1);
}

// A message if the first word that was not understood stands where a command should.
std::string UnknownCommand(const CLI::App& app) {
  const CLI::App* deepest = &app;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::App* command : deepest->get_subcommands({})) names.push_back(command->get_name());
  const std::vector<std::string> words = app.remaining(/*recurse=*/true);
  if (names.empty() || words.empty() || absl::StartsWith(words.front(), "-")) return "";
  const std::string nearest = jobspec::NearestName(words.front(), names);
  return absl::StrCat("error: `", words.front(), "` is not a command",
                      nearest.empty() ? "; there are: " + absl::StrJoin(names, ", ")
                                      : "; did you mean `" + nearest + "`?",
                      "\n");
}

std::string Footer() {
  return absl::StrCat(
      "Without --server: TRAIND_SERVER, else the first socket that exists of "
      "$XDG_RUNTIME_DIR/traind/traind.sock,\n/run/traind/traind.sock, "
      "~/.local/state/traind/traind.sock and /var/lib/traind/traind.sock.\n"
      "Without --token-file: TRAIND_TOKEN.\n\n",
      ExitCodeHelp());
}

CommonOptions MakeCommon(const GlobalFlags& flags) {
  CommonOptions common;
  if (flags.output == "json") common.output = OutputFormat::kJson;
  if (flags.output == "name") common.output = OutputFormat::kName;
  common.timeout = ParseTimeout(flags.timeout);
  return common;
}

absl::StatusOr<std::unique_ptr<Client>> MakeClient(const GlobalFlags& flags,
                                                   const CommonOptions& common,
                                                   const AppEnvironment& environment) {
  GrpcClientOptions options;
  options.interrupt = environment.interrupt;
  if (common.timeout) options.timeout = *common.timeout;
  TRAIND_ASSIGN_OR_RETURN(options.endpoint, FindEndpoint({flags.server, !flags.ca_file.empty(),
                                                          environment.variable, FileExists}));
  if (!flags.ca_file.empty()) {
    TRAIND_ASSIGN_OR_RETURN(options.ca_certificates, ReadFile(flags.ca_file));
  }
  options.token = environment.variable("TRAIND_TOKEN");
  if (!flags.token_file.empty()) {
    TRAIND_ASSIGN_OR_RETURN(options.token, ReadFile(flags.token_file));
  }
  options.token = std::string(absl::StripAsciiWhitespace(options.token));
  return MakeGrpcClient(std::move(options));
}

absl::StatusOr<ExitCode> RunCommand(const Command& command, const GlobalFlags& flags,
                                    AppEnvironment& environment) {
  const CommonOptions common = MakeCommon(flags);
  TRAIND_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                          MakeClient(flags, common, environment));
  return command(common, environment.io, *client);
}

}  // namespace

int RunApp(std::vector<std::string> arguments, AppEnvironment environment) {
  CLI::App app("trainctl submits fine-tuning jobs to traind and follows them.", "trainctl");
  GlobalFlags flags;
  Command command;
  AddGlobalFlags(&app, &flags);
  AddCommands(&app, &command);
  Finish(&app);
  app.footer(Footer());
  std::reverse(arguments.begin(), arguments.end());  // As the parser wants them.
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    if (const std::string unknown = UnknownCommand(app); !unknown.empty()) {
      *environment.io.err << unknown;
      return static_cast<int>(ExitCode::kUsage);
    }
    const int code = app.exit(error, *environment.io.out, *environment.io.err);
    return static_cast<int>(code == 0 ? ExitCode::kOk : ExitCode::kUsage);
  }
  const absl::StatusOr<ExitCode> result = RunCommand(command, flags, environment);
  environment.io.out->flush();
  if (result.ok()) return static_cast<int>(*result);
  *environment.io.err << ErrorText(result.status(), flags.debug);
  return static_cast<int>(ExitCodeOf(result.status()));
}

}  // namespace traind::client
