#include "worker/device/arena.h"

#include <new>

namespace traind {
namespace {

constexpr int64_t kAlignment = 64 / static_cast<int64_t>(sizeof(float));
constexpr int64_t kPadding = 16;

}  // namespace

void Arena::BeginMeasuring() {
  measuring_ = true;
  used_ = 0;
}

void Arena::Reserve() {
  if (used_ > capacity_) {
    block_.reset();  // First, so that the old and the new block never exist together.
    const size_t bytes = static_cast<size_t>(used_) * sizeof(float);
    block_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (block_ == nullptr) throw std::bad_alloc();
    capacity_ = used_;
  }
  measuring_ = false;
  used_ = 0;
}

float* Arena::Take(int64_t count) {
  float* piece = measuring_ ? nullptr : block_.get() + used_;
  used_ += (count + kPadding + kAlignment - 1) / kAlignment * kAlignment;
  return piece;
}

}  // namespace traind
