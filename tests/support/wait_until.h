// Waits for a condition in a test, instead of sleeping for luck.
#pragma once

#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace traind {

// Whether `condition` became true within `limit`. Looks again every few milliseconds.
inline bool WaitUntil(const std::function<bool()>& condition,
                      absl::Duration limit = absl::Seconds(30)) {
  const absl::Time deadline = absl::Now() + limit;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

}  // namespace traind
