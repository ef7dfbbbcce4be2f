#include "server/api/rpc_runner.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/log/log.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"

namespace traind::api {
namespace {

std::string AuthorizationOf(const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find("authorization");
  if (found == context.client_metadata().end()) return "";
  return std::string(found->second.data(), found->second.length());
}

// Every error that leaves the daemon has a reason.
absl::Status WithReason(const absl::Status& status) {
  const bool has_reason = status.ok() || ReasonOf(status) != Reason::kUnspecified;
  // The client is gone or has given up; nobody reads the details.
  if (has_reason || absl::IsCancelled(status) || absl::IsDeadlineExceeded(status)) return status;
  return Error(status.code(), Reason::kBug, status.message());
}

void LogCall(const RpcInfo& info, const std::string& caller, const absl::Status& status,
             absl::Duration duration) {
  const bool bug = ReasonOf(status) == Reason::kBug;
  const LogLevel level = bug ? LogLevel::kError : info.changes ? LogLevel::kInfo : LogLevel::kDebug;
  Log(level, "rpc.finished",
      {{"rpc", std::string(info.method)},
       {"job", SafeText(info.resource, 128)},
       {"caller", caller},
       {"code", absl::StatusCodeToString(status.code())},
       {"reason", status.ok() ? "" : std::string(ReasonName(ReasonOf(status)))},
       {"duration_ms", absl::StrCat(absl::ToInt64Milliseconds(duration))}},
      status.message());
}

}  // namespace

absl::Status Draining() {
  return Error(absl::StatusCode::kUnavailable, Reason::kDraining,
               "the daemon is stopping; call again");
}

void RpcRunner::WaitUntilIdle(absl::Duration limit) {
  absl::MutexLock lock(&mutex_);
  const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ == 0; };
  mutex_.AwaitWithTimeout(absl::Condition(&idle), limit);
}

grpc::Status RpcRunner::Unary(const grpc::ServerContext& context, const RpcInfo& info,
                              Handler handler) {
  {
    absl::MutexLock lock(&mutex_);
    ++running_;
  }
  const grpc::Status status = RunUnary(context, info, handler);
  absl::MutexLock lock(&mutex_);
  --running_;
  return status;
}

grpc::Status RpcRunner::RunUnary(const grpc::ServerContext& context, const RpcInfo& info,
                                 Handler handler) {
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<std::string> caller =
      authenticator_->Identify(context.peer(), AuthorizationOf(context));
  absl::Status status = caller.status();
  if (status.ok()) status = stopping() ? Draining() : handler(*caller);
  status = WithReason(status);
  const absl::Duration duration = absl::FromChrono(std::chrono::steady_clock::now() - start);
  LogCall(info, caller.ok() ? *caller : "", status, duration);
  if (observer_ != nullptr) observer_->OnRpcFinished(info.method, status.code(), duration);
  return ToGrpcStatus(status);
}

grpc::Status RpcRunner::Stream(const grpc::ServerContext& context, const RpcInfo& info,
                               Handler handler) {
  return Unary(context, info,
               [&](const std::string& caller) { return RunStream(info.method, caller, handler); });
}

absl::Status RpcRunner::RunStream(absl::string_view method, const std::string& caller,
                                  Handler handler) {
  if (++streams_ > max_streams_) {
    --streams_;
    const std::string limit = absl::StrCat(max_streams_);
    return Error(absl::StatusCode::kResourceExhausted, Reason::kTooManyStreams,
                 absl::StrCat("the daemon serves at most ", limit,
                              " streams at once; close one, or call again later"),
                 {{"limit", limit}});
  }
  if (observer_ != nullptr) observer_->OnStreamsChanged(method, 1);
  const absl::Status status = handler(caller);
  if (observer_ != nullptr) observer_->OnStreamsChanged(method, -1);
  --streams_;
  return status;
}

}  // namespace traind::api
