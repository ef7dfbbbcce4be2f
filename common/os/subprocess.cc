#include "common/os/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status/errors.h"

// glibc 2.36 forgot to say that these are C.
extern "C" {
#include <sys/pidfd.h>
}

extern char** environ;

namespace traind {
namespace {

constexpr int kFirstInheritableFile = 3;

std::vector<std::string> MergedEnvironment(
    const std::vector<std::pair<std::string, std::string>>& additions) {
  std::vector<std::string> merged;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool replaced =
        std::any_of(additions.begin(), additions.end(), [variable](const auto& addition) {
          return absl::StartsWith(*variable, absl::StrCat(addition.first, "="));
        });
    if (!replaced) merged.emplace_back(*variable);
  }
  for (const auto& [name, value] : additions) merged.push_back(absl::StrCat(name, "=", value));
  return merged;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// posix_spawn's two attribute objects, filled in and freed.
class SpawnSetup {
 public:
  explicit SpawnSetup(const SubprocessOptions& options) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    RedirectFiles(options);
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  void RedirectFiles(const SubprocessOptions& options) {
    const std::string output = options.output_path.empty() ? "/dev/null" : options.output_path;
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND, 0644);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    if (!options.working_directory.empty()) {
      posix_spawn_file_actions_addchdir_np(&actions_, options.working_directory.c_str());
    }
    posix_spawn_file_actions_addclosefrom_np(&actions_, kFirstInheritableFile);
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Whether the descriptor became readable. Negative: wait for ever.
bool PollReadable(int descriptor, absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    pollfd entry{descriptor, POLLIN, 0};
    const absl::Duration left = std::max(deadline - absl::Now(), absl::ZeroDuration());
    const int64_t milliseconds = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<int64_t>(milliseconds, 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && absl::Now() >= deadline) return false;
  }
}

}  // namespace

std::string DescribeExit(const ExitState& state) {
  switch (state.kind) {
    case ExitState::Kind::kExited:
      return absl::StrCat("exited with code ", state.value);
    case ExitState::Kind::kSignalled:
      return absl::StrCat("was killed by signal ", state.value, " (", strsignal(state.value), ")");
    case ExitState::Kind::kUnknown:
      break;
  }
  return "ended with a code that nobody saw";
}

absl::StatusOr<Subprocess> Subprocess::Start(const SubprocessOptions& options) {
  const SpawnSetup setup(options);
  std::vector<std::string> arguments = options.argv;
  std::vector<std::string> environment = MergedEnvironment(options.environment);
  pid_t pid = 0;
  const int error_number =
      ::posix_spawn(&pid, arguments.at(0).c_str(), setup.actions(), setup.attributes(),
                    Pointers(arguments).data(), Pointers(environment).data());
  if (error_number != 0) {
    return ErrnoError(error_number, Reason::kLaunchFailed, "start", arguments[0]);
  }
  // Nobody has waited for the child yet, so its id cannot belong to another process.
  absl::StatusOr<ProcessIdentity> identity = IdentifyProcess(pid);
  const int pidfd = ::pidfd_open(pid, 0);
  if (!identity.ok() || pidfd < 0) {
    const int open_error = errno;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    if (pidfd >= 0) ::close(pidfd);
    return ErrnoError(open_error, Reason::kLaunchFailed, "hold the process of", arguments[0]);
  }
  return Subprocess(*std::move(identity), pidfd, /*is_child=*/true);
}

absl::StatusOr<Subprocess> Subprocess::Adopt(const ProcessIdentity& identity) {
  const absl::Status gone = Error(absl::StatusCode::kNotFound, Reason::kUnspecified,
                                  absl::StrCat("process ", identity.pid, " is gone"));
  const int pidfd = identity.pid > 0 ? ::pidfd_open(identity.pid, 0) : -1;
  if (pidfd < 0) return gone;
  // Identified after it was opened: what the descriptor holds cannot change any more.
  const absl::StatusOr<ProcessIdentity> now = IdentifyProcess(identity.pid);
  if (!now.ok() || !(*now == identity) || PollReadable(pidfd, absl::ZeroDuration())) {
    ::close(pidfd);
    return gone;
  }
  return Subprocess(identity, pidfd, /*is_child=*/false);
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : identity_(std::move(other.identity_)),
      pidfd_(std::exchange(other.pidfd_, -1)),
      is_child_(other.is_child_),
      exit_(other.exit_) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  std::swap(identity_, other.identity_);
  std::swap(pidfd_, other.pidfd_);
  std::swap(is_child_, other.is_child_);
  std::swap(exit_, other.exit_);
  return *this;
}

Subprocess::~Subprocess() {
  if (pidfd_ >= 0) ::close(pidfd_);
}

std::optional<ExitState> Subprocess::Wait(absl::Duration timeout) {
  if (!exit_ && PollReadable(pidfd_, timeout)) exit_ = Reap();
  return exit_;
}

ExitState Subprocess::Reap() {
  siginfo_t info{};
  if (!is_child_ || ::waitid(P_PIDFD, static_cast<id_t>(pidfd_), &info, WEXITED) != 0) return {};
  if (info.si_code == CLD_EXITED) return {ExitState::Kind::kExited, info.si_status};
  return {ExitState::Kind::kSignalled, info.si_status};
}

absl::Status Subprocess::Signal(int signal) {
  if (exit_ || ::pidfd_send_signal(pidfd_, signal, nullptr, 0) == 0 || errno == ESRCH) {
    return absl::OkStatus();
  }
  return ErrnoError(errno, Reason::kUnspecified, "signal process", absl::StrCat(identity_.pid));
}

absl::Status BecomeSubreaper() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0) return absl::OkStatus();
  return ErrnoError(errno, Reason::kUnspecified, "become subreaper as", "this process");
}

int ReapOrphans(const std::vector<pid_t>& held) {
  siginfo_t info{};
  // The cheap question first: is anyone dead at all?
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return 0;
  int reaped = 0;
  for (const ProcessEntry& entry : ListProcesses()) {
    const bool ours = entry.parent == ::getpid() && entry.zombie;
    if (!ours || std::count(held.begin(), held.end(), entry.pid) > 0) continue;
    if (::waitpid(entry.pid, nullptr, WNOHANG) > 0) ++reaped;
  }
  return reaped;
}

}  // namespace traind
