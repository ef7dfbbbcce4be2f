#include "server/launcher/local_launcher.h"

#include <google/protobuf/util/json_util.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::launcher {
namespace {

constexpr std::streamoff kLogTailBytes = 2048;
constexpr int kLogTailLines = 5;

absl::StatusOr<std::string> WriteAssignment(const worker::v1::WorkerAssignment& assignment) {
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = true;
  const auto status = google::protobuf::util::MessageToJsonString(assignment, &json, options);
  if (!status.ok()) {
    return Error(
        absl::StatusCode::kInternal, Reason::kBug,
        absl::StrCat("the assignment cannot be written as JSON: ", std::string(status.message())));
  }
  const std::string path = absl::StrCat(assignment.attempt_dir(), "/assignment.json");
  TRAIND_RETURN_IF_ERROR(CreateDirectories(assignment.attempt_dir()));
  TRAIND_RETURN_IF_ERROR(WriteFileAtomically(path, json, Reason::kLaunchFailed));
  return path;
}

std::vector<Subprocess> ProcessesOf(const std::string& attempt_uid) {
  std::vector<Subprocess> processes;
  for (const ProcessIdentity& identity : FindMarkedProcesses(kAttemptMark, attempt_uid)) {
    absl::StatusOr<Subprocess> process = Subprocess::Adopt(identity);
    if (process.ok()) processes.push_back(*std::move(process));
  }
  return processes;
}

// Whether all ended before the deadline.
bool WaitForAll(std::vector<Subprocess>& processes, absl::Time deadline) {
  return std::all_of(processes.begin(), processes.end(), [deadline](Subprocess& process) {
    return process.Wait(std::max(deadline - absl::Now(), absl::ZeroDuration())).has_value();
  });
}

absl::Status SignalAll(std::vector<Subprocess>& processes, int signal) {
  for (Subprocess& process : processes) TRAIND_RETURN_IF_ERROR(process.Signal(signal));
  return absl::OkStatus();
}

// A look at the process table takes a moment, in which a process can have forked and ended.
bool NoneLeft(const std::string& attempt_uid) {
  return ProcessesOf(attempt_uid).empty() && ProcessesOf(attempt_uid).empty();
}

}  // namespace

absl::StatusOr<Subprocess> LocalLauncher::Launch(const worker::v1::WorkerAssignment& assignment) {
  TRAIND_ASSIGN_OR_RETURN(const std::string path, WriteAssignment(assignment));
  SubprocessOptions options;
  options.argv = {options_.worker_binary, "--assignment", path};
  options.environment = {{kAttemptMark, assignment.attempt_uid()},
                         {kDaemonMark, options_.state_dir}};
  options.working_directory = assignment.attempt_dir();
  options.output_path = absl::StrCat(assignment.attempt_dir(), "/worker.log");
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<Subprocess> process = Subprocess::Start(options);
  if (process.ok()) started_.push_back(process->identity());
  return process;
}

absl::StatusOr<Subprocess> LocalLauncher::Find(const std::string& attempt_uid,
                                               const ProcessIdentity& identity) {
  if (identity.pid != 0) return Subprocess::Adopt(identity);
  const std::vector<ProcessEntry> all = ListProcesses();
  for (const ProcessIdentity& marked : FindMarkedProcesses(kAttemptMark, attempt_uid)) {
    // The worker leads its session; its children do not.
    const bool leads = std::any_of(all.begin(), all.end(), [&marked](const ProcessEntry& entry) {
      return entry.pid == marked.pid && entry.session == marked.pid;
    });
    if (leads) return Subprocess::Adopt(marked);
  }
  return Error(absl::StatusCode::kNotFound, Reason::kWorkerLost,
               absl::StrCat("attempt ", attempt_uid, " has no worker process"));
}

absl::Status LocalLauncher::KillAttempt(const std::string& attempt_uid, absl::Duration grace) {
  std::vector<Subprocess> processes = ProcessesOf(attempt_uid);
  TRAIND_RETURN_IF_ERROR(SignalAll(processes, SIGTERM));
  WaitForAll(processes, absl::Now() + grace);
  const absl::Time deadline = absl::Now() + options_.kill_limit;
  while (!NoneLeft(attempt_uid)) {
    processes = ProcessesOf(attempt_uid);
    TRAIND_RETURN_IF_ERROR(SignalAll(processes, SIGKILL));
    if (!WaitForAll(processes, deadline)) {
      return Error(absl::StatusCode::kDeadlineExceeded, Reason::kWorkerLost,
                   absl::StrCat("process ", processes.front().identity().pid, " of attempt ",
                                attempt_uid, " does not end, not even by SIGKILL"));
    }
  }
  ReapOrphans();
  return absl::OkStatus();
}

std::vector<std::string> LocalLauncher::FindAttempts() {
  std::set<std::string> uids;
  for (const ProcessEntry& entry : ListProcesses()) {
    if (ProcessVariable(entry.pid, kDaemonMark) != options_.state_dir) continue;
    const std::string uid = ProcessVariable(entry.pid, kAttemptMark);
    if (!uid.empty()) uids.insert(uid);
  }
  return {uids.begin(), uids.end()};
}

std::string LocalLauncher::LastLogLines(const std::string& attempt_dir) {
  std::ifstream log(absl::StrCat(attempt_dir, "/worker.log"), std::ios::ate | std::ios::binary);
  if (!log) return "";
  const std::streamoff size = log.tellg();
  log.seekg(std::max<std::streamoff>(0, size - kLogTailBytes));
  std::string tail{std::istreambuf_iterator<char>(log), {}};
  absl::StripTrailingAsciiWhitespace(&tail);
  size_t start = tail.size();
  for (int line = 0; line < kLogTailLines && start != std::string::npos && start > 0; ++line) {
    start = tail.rfind('\n', start - 1);
  }
  return start == std::string::npos ? tail : tail.substr(start == 0 ? 0 : start + 1);
}

void LocalLauncher::ReapOrphans() {
  absl::MutexLock lock(&mutex_);
  started_.erase(std::remove_if(started_.begin(), started_.end(),
                                [](const ProcessIdentity& identity) {
                                  const auto now = IdentifyProcess(identity.pid);
                                  return !now.ok() || !(*now == identity);
                                }),
                 started_.end());
  std::vector<pid_t> held;
  for (const ProcessIdentity& identity : started_) held.push_back(identity.pid);
  traind::ReapOrphans(held);
}

}  // namespace traind::launcher
