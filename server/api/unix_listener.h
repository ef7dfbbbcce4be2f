// Accepts connections of a Unix socket and tells whose they are.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"

namespace traind::api {

// Owns the socket, its file and a thread that accepts. Thread-compatible.
class UnixListener {
 public:
  // Called on the accepting thread with a new connection (non-blocking; now the callee's) and the
  // user at its other end.
  using Handler = std::function<void(int descriptor, uid_t uid)>;

  // Creates the file with permissions `mode`. A file left by a dead process is replaced; one that
  // somebody listens on is not. Missing folders are created. Errors: FAILED_PRECONDITION
  // (ADDRESS_IN_USE), INVALID_ARGUMENT (CONFIG_INVALID), both naming the path.
  static absl::StatusOr<std::unique_ptr<UnixListener>> Listen(const std::string& path, mode_t mode);
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  // Starts the thread. Connections that came before wait in the system's queue.
  void StartAccepting(Handler handler);

  // Ends the thread and removes the file if it is still ours. May be called twice.
  void Stop();

 private:
  UnixListener(std::string path, int listener, int stop_event);

  void AcceptUntilStopped(const Handler& handler);
  void AcceptOne(const Handler& handler);
  bool WaitForConnection(int timeout_ms);
  void RemoveFile();

  const std::string path_;
  const int listener_;
  const int stop_event_;
  dev_t device_ = 0;  // Of the file, to recognise it at the end.
  ino_t inode_ = 0;
  std::thread thread_;
  bool stopped_ = false;
};

}  // namespace traind::api
