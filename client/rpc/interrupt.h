// That the user wants to stop.
#pragma once

#include <atomic>

namespace traind::client {

// Thread-safe, also in a signal handler.
class Interrupt {
 public:
  void Request() { requested_.store(true); }
  bool requested() const { return requested_.load(); }

 private:
  std::atomic<bool> requested_ = false;
};

}  // namespace traind::client
