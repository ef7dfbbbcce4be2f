#include "server/api/job_watch.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/names/resource_name.h"
#include "common/status/errors.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/jobs/job_state.h"

namespace traind::api {
namespace {

// Events read at once; bounds the memory of a watcher that begins at 0.
constexpr int kPageSize = 500;

using EndReason = v1::StreamEnd;

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp result;
  result.set_seconds(absl::ToUnixSeconds(time));
  result.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(result.seconds()))));
  return result;
}

// One watcher. Lives on its call's thread.
class JobWatch {
 public:
  JobWatch(const ServiceContext& context, const grpc::ServerContext& rpc, const v1::Job& job,
           grpc::ServerWriter<v1::Event>& writer)
      : context_(context),
        rpc_(rpc),
        writer_(writer),
        uid_(job.uid()),
        ended_(jobs::IsTerminal(job.state())),
        last_sent_(context.parts.clock->Now()) {}

  absl::Status Run(int64_t after) {
    after_ = after;
    for (;;) {
      const absl::Status sent = SendNewEvents();
      if (ReasonOf(sent) == Reason::kJobNotFound) return SendEnd(EndReason::JOB_DELETED);
      TRAIND_RETURN_IF_ERROR(sent);
      if (ended_) return SendEnd(EndReason::JOB_ENDED);
      TRAIND_ASSIGN_OR_RETURN(const std::optional<EndReason::Reason> end, WaitForMore());
      if (end.has_value()) return SendEnd(*end);
    }
  }

 private:
  // Everything that the store has after `after_`.
  absl::Status SendNewEvents() {
    for (;;) {
      TRAIND_ASSIGN_OR_RETURN(const std::vector<v1::Event> events,
                              context_.parts.store->ReadEvents(uid_, after_, kPageSize));
      for (const v1::Event& event : events) {
        TRAIND_RETURN_IF_ERROR(Send(event));
        after_ = event.sequence();
        if (jobs::IsTerminal(event.state_change().to())) ended_ = true;
      }
      if (events.size() < kPageSize || context_.runner->stopping()) return absl::OkStatus();
    }
  }

  // Waits in slices, so that a client that left is noticed. Returns why the stream ends, if it
  // does.
  absl::StatusOr<std::optional<EndReason::Reason>> WaitForMore() {
    for (;;) {
      if (rpc_.IsCancelled()) return absl::CancelledError("the client left");
      if (context_.runner->stopping()) return EndReason::SERVER_STOPPING;
      switch (context_.parts.events->Wait(uid_, after_, TimeToWait())) {
        case events::EventHub::Wake::kNewEvents:
          return std::nullopt;
        case events::EventHub::Wake::kDeleted:
          return EndReason::JOB_DELETED;
        case events::EventHub::Wake::kStopping:
          return EndReason::SERVER_STOPPING;
        case events::EventHub::Wake::kTimeout:
          break;
      }
      TRAIND_RETURN_IF_ERROR(SendHeartbeatIfDue());
    }
  }

  absl::Duration HeartbeatDue() const {
    return last_sent_ + context_.options->heartbeat_interval - context_.parts.clock->Now();
  }

  absl::Duration TimeToWait() const {
    return std::clamp(HeartbeatDue(), absl::Milliseconds(1), kStreamSlice);
  }

  absl::Status SendHeartbeatIfDue() {
    if (HeartbeatDue() > absl::ZeroDuration()) return absl::OkStatus();
    v1::Event event;
    *event.mutable_time() = ToTimestamp(context_.parts.clock->Now());
    event.mutable_heartbeat()->set_last_sequence(after_);
    return Send(event);
  }

  absl::Status SendEnd(EndReason::Reason reason) {
    v1::Event event;
    *event.mutable_time() = ToTimestamp(context_.parts.clock->Now());
    event.mutable_end()->set_reason(reason);
    return Send(event);
  }

  absl::Status Send(const v1::Event& event) {
    if (!writer_.Write(event)) return absl::CancelledError("the client left");
    last_sent_ = context_.parts.clock->Now();
    return absl::OkStatus();
  }

  const ServiceContext& context_;
  const grpc::ServerContext& rpc_;
  grpc::ServerWriter<v1::Event>& writer_;
  const std::string uid_;
  int64_t after_ = 0;
  bool ended_;
  absl::Time last_sent_;
};

absl::Status CheckSequence(int64_t after, const v1::Job& job) {
  if (after < 0) {
    return FieldErrors({{"after_sequence", absl::StrCat("must be at least 0; got ", after)}});
  }
  if (after <= job.last_sequence()) return absl::OkStatus();
  const std::string newest = absl::StrCat(job.last_sequence());
  const std::string asked = absl::StrCat(after);
  return Error(absl::StatusCode::kOutOfRange, Reason::kSequenceOutOfRange,
               absl::StrCat("after_sequence ", asked, " lies beyond the newest event, ", newest,
                            "; watch from a number that was received"),
               {{"after_sequence", asked}, {"last_sequence", newest}, {"job", job.name()}});
}

}  // namespace

absl::Status StreamEvents(const ServiceContext& context, const grpc::ServerContext& rpc,
                          const v1::WatchJobRequest& request,
                          grpc::ServerWriter<v1::Event>& writer) {
  TRAIND_RETURN_IF_ERROR(ParseJobName(request.name()).status());
  TRAIND_ASSIGN_OR_RETURN(const store::JobRecord record,
                          context.parts.store->GetJob(request.name()));
  TRAIND_RETURN_IF_ERROR(CheckSequence(request.after_sequence(), record.job));
  return JobWatch(context, rpc, record.job, writer).Run(request.after_sequence());
}

}  // namespace traind::api
