#include "worker/trainer/stop_flag.h"

namespace traind {

void StopFlag::Request(StopKind kind) {
  StopKind seen = kind_.load(std::memory_order_acquire);
  while (seen < kind && !kind_.compare_exchange_weak(seen, kind, std::memory_order_acq_rel)) {
  }
}

}  // namespace traind
