#include "worker/device/arena.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind {
namespace {

constexpr int64_t kAlignment = 64 / static_cast<int64_t>(sizeof(float));
constexpr int64_t kPadding = 16;

absl::Status OutOfMemory(size_t bytes) {
  const std::string size = absl::StrCat(bytes);
  return Error(absl::StatusCode::kResourceExhausted, Reason::kOutOfMemory,
               absl::StrCat("There is no memory for ", size,
                            " bytes of activations. Lower per_device_train_batch_size or "
                            "max_length."),
               {{"bytes", size}});
}

}  // namespace

void Arena::BeginMeasuring() {
  measuring_ = true;
  used_ = 0;
}

absl::Status Arena::Reserve() {
  if (used_ > capacity_) {
    block_.reset();  // First, so that the old and the new block never exist together.
    capacity_ = 0;
    const size_t bytes = static_cast<size_t>(used_) * sizeof(float);
    block_.reset(static_cast<float*>(std::aligned_alloc(64, bytes)));
    if (block_ == nullptr) return OutOfMemory(bytes);
    capacity_ = used_;
  }
  measuring_ = false;
  used_ = 0;
  return absl::OkStatus();
}

float* Arena::Take(int64_t count) {
  float* piece = measuring_ ? nullptr : block_.get() + used_;
  used_ += (count + kPadding + kAlignment - 1) / kAlignment * kAlignment;
  return piece;
}

}  // namespace traind
