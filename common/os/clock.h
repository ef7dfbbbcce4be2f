// Time as a thing that tests can hold.
#pragma once

#include <ctime>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace traind {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
  // For measuring how long something took: never set back or forward, and standing still while the
  // machine sleeps. Its zero means nothing.
  virtual absl::Time SteadyNow() const { return Now(); }
};

// The machine's clock.
class SystemClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
  absl::Time SteadyNow() const override {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::TimeFromTimespec(now);
  }
};

}  // namespace traind
