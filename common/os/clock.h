// Time as a thing that tests can hold.
#pragma once

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace traind {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

// The machine's clock.
class SystemClock : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

}  // namespace traind
