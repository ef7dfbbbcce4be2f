// How long a worker may be silent.
#pragma once

#include "absl/time/time.h"

namespace traind::supervisor {

// A value. Times are of Clock::SteadyNow.
class Lease {
 public:
  // A worker has `first` to dial in, and then `length` after each sign of life.
  Lease(absl::Time now, absl::Duration first, absl::Duration length)
      : length_(length), last_sign_(now), deadline_(now + first) {}

  // A sign of life.
  void Renew(absl::Time now) {
    last_sign_ = now;
    deadline_ = now + length_;
  }

  bool Expired(absl::Time now) const { return now >= deadline_; }
  absl::Time deadline() const { return deadline_; }
  absl::Duration Age(absl::Time now) const { return now - last_sign_; }

 private:
  absl::Duration length_;
  absl::Time last_sign_;
  absl::Time deadline_;
};

}  // namespace traind::supervisor
