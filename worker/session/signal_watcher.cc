#include "worker/session/signal_watcher.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "common/log/log.h"

namespace traind {

SignalWatcher::SignalWatcher(StopFlag* stop)
    : stop_(stop), wake_descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  sigemptyset(&watched_);
  sigaddset(&watched_, SIGTERM);
  sigaddset(&watched_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &watched_, &before_);
  thread_ = std::thread([this] { Watch(); });
}

SignalWatcher::~SignalWatcher() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
  thread_.join();
  ::close(wake_descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void SignalWatcher::Watch() {
  const int signals = ::signalfd(-1, &watched_, SFD_CLOEXEC);
  pollfd waits[] = {{signals, POLLIN, 0}, {wake_descriptor_, POLLIN, 0}};
  bool first = true;
  while (::poll(waits, 2, -1) >= 0 || errno == EINTR) {
    if ((waits[1].revents & POLLIN) != 0) break;
    signalfd_siginfo info{};
    if ((waits[0].revents & POLLIN) == 0 || ::read(signals, &info, sizeof info) < 0) continue;
    Log(LogLevel::kInfo, "worker.signal_received", {{"signal", std::to_string(info.ssi_signo)}});
    stop_->Request(first ? StopKind::kStopWithCheckpoint : StopKind::kStop);
    first = false;
  }
  ::close(signals);
}

}  // namespace traind
