#include "server/api/environment_checks.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/os/file.h"
#include "common/os/subprocess.h"
#include "common/status/errors.h"

namespace traind::api {
namespace {

constexpr double kGibibyte = 1024.0 * 1024 * 1024;
constexpr double kFailedBelow = 1 * kGibibyte;
constexpr double kWarningBelow = 10 * kGibibyte;
constexpr absl::Duration kWorkerCheckTimeout = absl::Seconds(60);
constexpr size_t kMaxOutputBytes = 1000;

using Check = v1::EnvironmentCheck;

Check MakeCheck(const std::string& name, Check::Result result, absl::string_view message) {
  Check check;
  check.set_name(name);
  check.set_result(result);
  check.set_message(SafeText(message, kMaxOutputBytes));
  return check;
}

// A file for the output of a program, gone with this object.
class OutputFile {
 public:
  OutputFile() : path_("/tmp/traind-check-XXXXXX"), descriptor_(mkstemp(path_.data())) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(path_.c_str());
  }

  const std::string& path() const { return path_; }
  std::string Read() const {
    std::string text = ReadFile(path_).value_or("");
    absl::StripAsciiWhitespace(&text);
    return text;
  }

 private:
  std::string path_;
  int descriptor_;
};

}  // namespace

Check CheckWorkerBinary(const std::string& worker_binary, absl::Duration timeout) {
  const std::string name = "worker_binary";
  const OutputFile output;
  auto worker = Subprocess::Start({.argv = {worker_binary, "--check"},
                                   .environment = {},
                                   .working_directory = "/",
                                   .output_path = output.path()});
  if (!worker.ok()) {
    return MakeCheck(
        name, Check::FAILED,
        absl::StrCat(worker.status().message(), "; build or install it, or set worker_binary"));
  }
  const std::optional<ExitState> exit = worker->Wait(timeout);
  if (!exit.has_value()) {
    // Nothing is lost if it ended meanwhile.
    worker->Signal(SIGKILL).IgnoreError();
    worker->Wait(absl::Seconds(5));
    return MakeCheck(
        name, Check::FAILED,
        absl::StrCat(worker_binary, " --check did not end within ", absl::FormatDuration(timeout)));
  }
  if (exit->kind == ExitState::Kind::kExited && exit->value == 0) {
    return MakeCheck(name, Check::OK, absl::StrCat(worker_binary, ": ", output.Read()));
  }
  return MakeCheck(
      name, Check::FAILED,
      absl::StrCat(worker_binary, " --check ", DescribeExit(*exit), ": ", output.Read()));
}

Check CheckStateDir(const std::string& state_dir) {
  const std::string name = "state_dir";
  struct statvfs disk;
  if (access(state_dir.c_str(), W_OK | X_OK) != 0 || statvfs(state_dir.c_str(), &disk) != 0) {
    return MakeCheck(name, Check::FAILED,
                     absl::StrCat("cannot write to ", state_dir, ": ", std::strerror(errno)));
  }
  const double free_bytes = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  const std::string text =
      absl::StrFormat("%s has %.1f GiB free", state_dir, free_bytes / kGibibyte);
  if (free_bytes < kFailedBelow) {
    return MakeCheck(name, Check::FAILED, text + "; checkpoints will not fit: free some");
  }
  if (free_bytes < kWarningBelow) {
    return MakeCheck(name, Check::WARNING, text + "; checkpoints may soon not fit");
  }
  return MakeCheck(name, Check::OK, text);
}

Check CheckAllowedRoot(const std::string& root) {
  const std::string name = "allowed_root";
  if (access(root.c_str(), R_OK | X_OK) == 0) {
    return MakeCheck(name, Check::OK, absl::StrCat(root, " is readable"));
  }
  return MakeCheck(name, Check::WARNING,
                   absl::StrCat("jobs cannot use ", root, ": ", std::strerror(errno)));
}

Check CheckDeviceCount(size_t count) {
  const std::string name = "devices";
  if (count > 0) return MakeCheck(name, Check::OK, absl::StrCat(count, " to train on"));
  return MakeCheck(name, Check::FAILED, "nothing to train on; set cpu_slots to at least 1");
}

std::vector<Check> CheckEnvironment(const config::v1::TraindConfig& config, size_t device_count) {
  std::vector<Check> checks;
  checks.push_back(CheckWorkerBinary(config.worker_binary(), kWorkerCheckTimeout));
  checks.push_back(CheckStateDir(config.state_dir()));
  for (const std::string& root : config.allowed_roots()) checks.push_back(CheckAllowedRoot(root));
  checks.push_back(CheckDeviceCount(device_count));
  return checks;
}

}  // namespace traind::api
