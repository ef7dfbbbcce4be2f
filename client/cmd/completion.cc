#include "client/cmd/completion.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace traind::client {
namespace {

// What may follow a command path such as `job list`.
struct Words {
  std::string path;  // Empty for the program itself.
  std::vector<std::string> commands;
  std::vector<std::string> command_help;
  std::vector<std::string> flags;  // With dashes.
  std::vector<std::string> flag_help;
};

void Collect(const CLI::App& app, const std::string& path, std::vector<Words>* all) {
  Words words;
  words.path = path;
  for (const CLI::App* command : app.get_subcommands({})) {
    words.commands.push_back(command->get_name());
    words.command_help.push_back(command->get_description());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      words.flags.push_back(absl::StrCat("--", name));
      words.flag_help.push_back(option->get_description());
    }
  }
  all->push_back(words);
  for (const CLI::App* command : app.get_subcommands({})) {
    Collect(*command, absl::StrCat(path, path.empty() ? "" : " ", command->get_name()), all);
  }
}

std::string Bash(const std::vector<Words>& all) {
  std::string cases, paths;
  for (const Words& words : all) {
    std::vector<std::string> candidates = words.commands;
    candidates.insert(candidates.end(), words.flags.begin(), words.flags.end());
    if (!words.path.empty()) {
      candidates.insert(candidates.end(), all.front().flags.begin(), all.front().flags.end());
    }
    absl::StrAppend(&cases, "    '", words.path, "') words='", absl::StrJoin(candidates, " "),
                    "' ;;\n");
    absl::StrAppend(&paths, "|", words.path, "|");
  }
  return absl::StrCat(
      "_trainctl() {\n"
      "  local path='' words='' i next\n"
      "  COMPREPLY=()\n"
      "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
      "    next=\"${path:+$path }${COMP_WORDS[i]}\"\n"
      "    [[ '",
      paths,
      "' == *\"|$next|\"* ]] && path=$next\n"
      "  done\n"
      "  if [[ ${COMP_WORDS[COMP_CWORD-1]} == --output ]]; then\n"
      "    COMPREPLY=($(compgen -W 'table json name' -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
      "    return\n"
      "  fi\n"
      "  case $path in\n",
      cases,
      "  esac\n"
      "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
      "}\n"
      "complete -o default -F _trainctl trainctl\n");
}

std::string Zsh(const std::vector<Words>& all) {
  return absl::StrCat("#compdef trainctl\nautoload -U +X bashcompinit && bashcompinit\n",
                      Bash(all));
}

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

// Shown if the words so far that are no flags are exactly `path`, or begin with it for flags.
std::string Fish(const std::vector<Words>& all) {
  std::string text =
      "function __trainctl_path\n"
      "  set -l words (commandline -opc | string match -v -- '-*')\n"
      "  test (string join ' ' -- $words[2..]) = \"$argv[1]\"\n"
      "end\n"
      "function __trainctl_in\n"
      "  set -l words (commandline -opc | string match -v -- '-*')\n"
      "  string match -q -- \"$argv[1]*\" (string join ' ' -- $words[2..])\n"
      "end\n";
  for (const Words& words : all) {
    for (size_t i = 0; i < words.commands.size(); ++i) {
      absl::StrAppend(&text, "complete -c trainctl -f -n \"__trainctl_path '", words.path,
                      "'\" -a ", words.commands[i], " -d ", FishQuoted(words.command_help[i]),
                      "\n");
    }
    for (size_t i = 0; i < words.flags.size(); ++i) {
      absl::StrAppend(&text, "complete -c trainctl -n \"__trainctl_in '", words.path, "'\" -l ",
                      words.flags[i].substr(2), " -d ", FishQuoted(words.flag_help[i]), "\n");
    }
  }
  return text;
}

}  // namespace

absl::StatusOr<ExitCode> RunCompletion(const CompletionOptions& options, IoStreams& io, Client&) {
  std::vector<Words> all;
  Collect(*options.root, "", &all);
  if (options.shell == "bash") *io.out << Bash(all);
  if (options.shell == "zsh") *io.out << Zsh(all);
  if (options.shell == "fish") *io.out << Fish(all);
  return ExitCode::kOk;
}

void AddCompletion(CLI::App* parent, Command* selected, RunFunction<CompletionOptions> run) {
  auto options = std::make_shared<CompletionOptions>();
  options->root = parent;
  CLI::App* app = parent->add_subcommand("completion", "Print a script that completes commands");
  app->add_option("shell", options->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  app->footer(
      "bash:  source <(trainctl completion bash)\n"
      "zsh:   source <(trainctl completion zsh)\n"
      "fish:  trainctl completion fish | source");
  Bind(app, options, std::move(run), selected);
}

}  // namespace traind::client
