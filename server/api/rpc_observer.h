// What the API tells about each finished call, so that metrics and audits need no gRPC.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace traind::api {

// Thread-safe; called after each call, on the call's thread; must not block.
class RpcObserver {
 public:
  virtual ~RpcObserver() = default;

  // `method` such as `CreateJob`. For a stream `duration` is its whole life.
  virtual void OnRpcFinished(absl::string_view method, absl::StatusCode code,
                             absl::Duration duration) = 0;
  // The number of open streams of `method` changed by `change` (1 or -1).
  virtual void OnStreamsChanged(absl::string_view method, int change) = 0;
};

}  // namespace traind::api
