// One block of memory that activations are cut from.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

#include "absl/status/status.h"

namespace traind {

// Hands out pieces of one 64-byte aligned block. A layout is walked twice: once measuring, then,
// after Reserve, for real; so the block grows only when a larger micro-batch comes. Contents are
// undefined after Reserve. Thread-compatible.
class Arena {
 public:
  // Starts a walk that only counts: Take returns null.
  void BeginMeasuring();

  // Makes room for what was measured, throwing the old contents away if it has to grow, and
  // starts a walk for real. Errors: RESOURCE_EXHAUSTED (OUT_OF_MEMORY).
  absl::Status Reserve();

  // The next `count` floats, 64-byte aligned and followed by at least 16 floats that kernels may
  // read but not write.
  float* Take(int64_t count);

  int64_t capacity_bytes() const { return capacity_ * static_cast<int64_t>(sizeof(float)); }

 private:
  struct Free {
    void operator()(float* block) const { std::free(block); }
  };

  std::unique_ptr<float, Free> block_;
  int64_t capacity_ = 0;  // In floats, as used_.
  int64_t used_ = 0;
  bool measuring_ = true;
};

}  // namespace traind
