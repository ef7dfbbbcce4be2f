// Workers as processes of this machine.
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/launcher/launcher.h"

namespace traind::launcher {

// The marks, as environment variables: which attempt, and which daemon's.
inline constexpr char kAttemptMark[] = "TRAIND_ATTEMPT_UID";
inline constexpr char kDaemonMark[] = "TRAIND_WORKER_OF";

struct LocalLauncherOptions {
  std::string worker_binary;  // Path of `traind-worker`.
  std::string state_dir;      // Tells this daemon's workers from another one's.
  // How long SIGKILL may take, which needs seconds only for a process stuck in the kernel.
  absl::Duration kill_limit = absl::Seconds(20);
};

// Thread-safe. The process must be a subreaper (BecomeSubreaper) for ReapOrphans to see everything.
class LocalLauncher : public Launcher {
 public:
  explicit LocalLauncher(LocalLauncherOptions options) : options_(std::move(options)) {}

  absl::StatusOr<Subprocess> Launch(const worker::v1::WorkerAssignment& assignment) override;
  absl::StatusOr<Subprocess> Find(const std::string& attempt_uid,
                                  const ProcessIdentity& identity) override;
  absl::Status KillAttempt(const std::string& attempt_uid, absl::Duration grace) override;
  std::vector<std::string> FindAttempts() override;
  std::string LastLogLines(const std::string& attempt_dir) override;
  void ReapOrphans() override;

 private:
  const LocalLauncherOptions options_;
  // Held across the start of a process: a child that dies at once must be in `started_` before
  // ReapOrphans looks, or its exit code would be lost.
  absl::Mutex mutex_;
  std::vector<ProcessIdentity> started_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind::launcher
