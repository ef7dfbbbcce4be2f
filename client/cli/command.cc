#include "client/cli/command.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/names/resource_name.h"
#include "common/status/errors.h"

namespace traind::client {

absl::StatusOr<std::string> JobNameArgument(const std::string& text) {
  const std::string name = absl::StartsWith(text, "jobs/") ? text : absl::StrCat("jobs/", text);
  TRAIND_RETURN_IF_ERROR(ParseJobName(name, "JOB").status());
  return name;
}

absl::StatusOr<std::string> CheckpointNameArgument(const std::string& text) {
  std::string name = absl::StartsWith(text, "jobs/") ? text.substr(5) : text;
  if (!absl::StrContains(name, "/")) absl::StrAppend(&name, "/adapter");
  if (!absl::StrContains(name, "/checkpoints/")) {
    name.replace(name.find('/'), 1, "/checkpoints/");
  }
  name.insert(0, "jobs/");
  TRAIND_RETURN_IF_ERROR(ParseCheckpointName(name).status());
  return name;
}

CLI::Validator KeyValueValidator() {
  return CLI::Validator(
      [](const std::string& text) -> std::string {
        const size_t equals = text.find('=');
        const bool good = equals != std::string::npos && equals > 0;
        return good ? "" : "must be KEY=VALUE; got `" + text + "`";
      },
      "");
}

std::pair<std::string, std::string> SplitKeyValue(const std::string& text) {
  const size_t equals = text.find('=');
  return {text.substr(0, equals), text.substr(equals + 1)};
}

}  // namespace traind::client
