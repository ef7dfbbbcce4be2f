// SIGTERM and SIGINT as a stop with checkpoint.
#pragma once

#include <csignal>
#include <thread>

#include "worker/trainer/stop_flag.h"

namespace traind {

// Blocks SIGTERM and SIGINT in the calling thread (and in the threads that it starts later) and
// waits for them on a thread of its own. The first one asks for a stop with checkpoint, a second
// one for a stop without. Create it before any other thread. Lives on the main thread.
class SignalWatcher {
 public:
  // `stop` is borrowed and outlives the watcher.
  explicit SignalWatcher(StopFlag* stop);
  // Unblocks the signals.
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  void Watch();

  StopFlag* stop_;
  sigset_t watched_;
  sigset_t before_;
  int wake_descriptor_;
  std::thread thread_;
};

}  // namespace traind
