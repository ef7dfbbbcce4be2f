// What a command is: options, a run function over them, and the binding of the two to a parser.
//
// Every command has a struct of options, `Run…(options, io, client)`, and `Add…(parent, selected)`,
// which takes another run function in tests: parsing is tested apart from running.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/exit_code.h"
#include "client/output/io_streams.h"
#include "client/rpc/client.h"

namespace traind::client {

enum class OutputFormat { kTable, kJson, kName };

// What every command can be told.
struct CommonOptions {
  OutputFormat output = OutputFormat::kTable;
  std::optional<absl::Duration> timeout;  // --timeout, if given.
};

template <typename Options>
using RunFunction = std::function<absl::StatusOr<ExitCode>(const Options&, IoStreams&, Client&)>;

// A parsed command line, ready to run.
using Command = std::function<absl::StatusOr<ExitCode>(const CommonOptions&, IoStreams&, Client&)>;

// Lets `app`, once it was parsed, put `run` over `options` into `*selected`.
// `Options` has a member `common`.
template <typename Options>
void Bind(CLI::App* app, std::shared_ptr<Options> options, RunFunction<Options> run,
          Command* selected) {
  app->callback([=] {
    *selected = [=](const CommonOptions& common, IoStreams& io, Client& client) {
      options->common = common;
      return run(*options, io, client);
    };
  });
}

// `jobs/{job}` for `jobs/{job}` and for `{job}`. INVALID_ARGUMENT for anything else.
absl::StatusOr<std::string> JobNameArgument(const std::string& text);

// `jobs/{job}/checkpoints/{checkpoint}` for itself, for `{job}/{checkpoint}`, and, as `adapter`,
// for
// `{job}` and `jobs/{job}`.
absl::StatusOr<std::string> CheckpointNameArgument(const std::string& text);

// For flags of the form `key=value`.
CLI::Validator KeyValueValidator();

// REQUIRES: `text` passed KeyValueValidator.
std::pair<std::string, std::string> SplitKeyValue(const std::string& text);

}  // namespace traind::client
