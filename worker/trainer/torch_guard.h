// The one place where exceptions of LibTorch and of the allocator become statuses.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind {

// Returns what `function` returns, an absl::Status or StatusOr. Errors also: RESOURCE_EXHAUSTED
// (OUT_OF_MEMORY), INTERNAL (BUG) with the exception's text.
template <typename Function>
auto CatchExceptions(Function&& function) -> decltype(function()) {
  try {
    return std::forward<Function>(function)();
  } catch (const std::bad_alloc&) {
    return Error(absl::StatusCode::kResourceExhausted, Reason::kOutOfMemory,
                 "memory did not suffice; lower training.per_device_train_batch_size or "
                 "dataset.max_length");
  } catch (const std::exception& exception) {
    return Error(absl::StatusCode::kInternal, Reason::kBug,
                 absl::StrCat("the worker failed: ", exception.what()));
  }
}

}  // namespace traind
