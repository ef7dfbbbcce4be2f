// What every call has in common: who calls, how long it took, its log line and its error.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/api/authenticator.h"
#include "server/api/rpc_observer.h"

namespace traind::api {

// A call as it shows in logs and metrics.
struct RpcInfo {
  absl::string_view method;    // Such as `CreateJob`.
  absl::string_view resource;  // Name of what it is about, as sent; may be empty.
  bool changes = false;        // It changes something, so it is logged at info.
};

// The only place that turns an absl::Status into the answer of a call. An error without a reason is
// a defect of ours and gets the reason BUG. Thread-safe.
class RpcRunner {
 public:
  using Handler = absl::FunctionRef<absl::Status(const std::string& caller)>;

  // `observer` may be null. At most `max_streams` Stream calls run at once.
  RpcRunner(const Authenticator* authenticator, RpcObserver* observer, int max_streams)
      : authenticator_(authenticator), observer_(observer), max_streams_(max_streams) {}

  // Runs `handler` with the caller's name, if the caller is known. `info` is read when the call has
  // ended, so the handler may still name the resource.
  grpc::Status Unary(const grpc::ServerContext& context, const RpcInfo& info, Handler handler);

  // The same for a stream. Errors: RESOURCE_EXHAUSTED (TOO_MANY_STREAMS).
  grpc::Status Stream(const grpc::ServerContext& context, const RpcInfo& info, Handler handler);

  // From now on stopping() is true and calls are refused with UNAVAILABLE (DRAINING).
  void BeginStop() { stopping_ = true; }
  bool stopping() const { return stopping_; }

  // Returns when no call runs, or after `limit`.
  void WaitUntilIdle(absl::Duration limit);

 private:
  grpc::Status RunUnary(const grpc::ServerContext& context, const RpcInfo& info, Handler handler);
  absl::Status RunStream(absl::string_view method, const std::string& caller, Handler handler);

  const Authenticator* const authenticator_;
  RpcObserver* const observer_;
  const int max_streams_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> streams_ = 0;
  absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

// UNAVAILABLE (DRAINING).
absl::Status Draining();

}  // namespace traind::api
