// Child processes that outlive us, held so that a signal can never hit a stranger.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/os/process_table.h"

namespace traind {

struct SubprocessOptions {
  std::vector<std::string> argv;                                 // argv[0]: the file to run.
  std::vector<std::pair<std::string, std::string>> environment;  // Added to ours.
  std::string working_directory;                                 // Empty: ours.
  std::string output_path;  // stdout and stderr are appended here. Empty: /dev/null.
};

// How a process ended.
struct ExitState {
  enum class Kind { kExited, kSignalled, kUnknown };  // kUnknown: it was not our child.
  Kind kind = Kind::kUnknown;
  int value = 0;  // Exit code or signal.
};

// Such as `exited with code 3` or `was killed by signal 9 (Killed)`.
std::string DescribeExit(const ExitState& state);

// One process, held by a pidfd. Dropping the object leaves the process alone. Thread-compatible.
//
// A started process has its own session and process group, no open files but 0, 1 and 2, no blocked
// signals, and is not tied to our life.
class Subprocess {
 public:
  // Errors: NOT_FOUND and PERMISSION_DENIED (the file cannot be run), INTERNAL, all LAUNCH_FAILED.
  static absl::StatusOr<Subprocess> Start(const SubprocessOptions& options);

  // Takes hold of a process that somebody else started. NOT_FOUND if it is gone, even if its
  // number was given to another one, or a zombie of another parent.
  static absl::StatusOr<Subprocess> Adopt(const ProcessIdentity& identity);

  Subprocess(Subprocess&& other) noexcept;
  Subprocess& operator=(Subprocess&& other) noexcept;
  ~Subprocess();

  const ProcessIdentity& identity() const { return identity_; }

  // Readable for poll(2) once the process has ended.
  int poll_descriptor() const { return pidfd_; }

  // Waits for the end, at most `timeout`, and reaps the process. nullopt: still running.
  std::optional<ExitState> Wait(absl::Duration timeout);

  // OK too if the process has ended already.
  absl::Status Signal(int signal);

 private:
  Subprocess(ProcessIdentity identity, int pidfd, bool is_child)
      : identity_(std::move(identity)), pidfd_(pidfd), is_child_(is_child) {}

  ExitState Reap();

  ProcessIdentity identity_;
  int pidfd_ = -1;
  bool is_child_ = false;
  std::optional<ExitState> exit_;
};

// From now on orphaned descendants become our children instead of init's, so that we can see and
// reap them.
absl::Status BecomeSubreaper();

// Reaps our dead children except those in `held`, which their owners reap. Returns how many.
int ReapOrphans(const std::vector<pid_t>& held);

}  // namespace traind
