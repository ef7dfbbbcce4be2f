#include "client/rpc/job_follower.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

// The state of one FollowJob.
class Follower {
 public:
  Follower(Client& client, const FollowOptions& options)
      : client_(client), options_(options), last_(options.after_sequence) {}

  absl::StatusOr<v1::StreamEnd::Reason> Run() {
    heard_ = client_.Now();
    for (;;) {
      const int64_t before = last_;
      end_ = v1::StreamEnd::REASON_UNSPECIFIED;
      gap_ = false;
      const absl::Status status = Watch();
      if (stopped_ || Ended()) return end_;
      if (absl::IsCancelled(status) && ReasonOf(status) == Reason::kUnspecified) return status;
      if (gap_ && last_ == before) return Missing();
      if (gap_) continue;
      if (!status.ok() && !IsConnectionTrouble(status)) return status;
      TRAIND_RETURN_IF_ERROR(WaitToRetry(status));
    }
  }

 private:
  bool Ended() const {
    return end_ == v1::StreamEnd::JOB_ENDED || end_ == v1::StreamEnd::JOB_DELETED;
  }

  absl::Status Watch() {
    v1::WatchJobRequest request;
    request.set_name(options_.name);
    request.set_after_sequence(last_);
    return client_.WatchJob(request, [this](const v1::Event& event) { return OnMessage(event); });
  }

  bool OnMessage(const v1::Event& event) {
    heard_ = client_.Now();
    backoff_.Reset();
    if (lost_) {
      lost_ = false;
      if (options_.on_resumed) options_.on_resumed();
    }
    if (event.has_end()) {
      end_ = event.end().reason();
    } else if (event.sequence() > last_ + 1) {
      missing_ = event.sequence();
      gap_ = true;
      return false;
    } else if (event.sequence() == last_ + 1) {
      ++last_;
      options_.on_event(event);
    }  // Heartbeats have no number; what was seen before a reconnect is not shown again.
    stopped_ = options_.wants_more && !options_.wants_more();
    return !stopped_;
  }

  absl::Status Missing() const {
    return Error(absl::StatusCode::kDataLoss, Reason::kBug,
                 absl::StrCat("the daemon left out the events ", last_ + 1, " to ", missing_ - 1,
                              " of ", options_.name),
                 {{"job", options_.name}});
  }

  // An OK status is a stream that ended without saying why, as when the daemon stops.
  absl::Status WaitToRetry(const absl::Status& status) {
    const absl::Status cause =
        status.ok() ? absl::UnavailableError("the daemon closed the connection") : status;
    if (client_.Now() - heard_ > options_.give_up_after) return cause;
    if (!lost_ && options_.on_lost) options_.on_lost(cause);
    lost_ = true;
    if (client_.Pause(backoff_.Next())) return absl::OkStatus();
    return absl::CancelledError("interrupted");
  }

  Client& client_;
  const FollowOptions& options_;
  int64_t last_;
  int64_t missing_ = 0;  // The number that came instead of last_ + 1.
  bool gap_ = false;
  bool lost_ = false;
  bool stopped_ = false;
  v1::StreamEnd::Reason end_ = v1::StreamEnd::REASON_UNSPECIFIED;
  absl::Time heard_;
  Backoff backoff_;
};

}  // namespace

absl::Duration Backoff::Next() {
  const absl::Duration now = next_;
  next_ = std::min(next_ * 2, kLongest);
  return now;
}

bool IsConnectionTrouble(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return true;
  // What gRPC makes of a connection that breaks inside a message carries no reason of ours.
  const bool from_transport = absl::IsUnknown(status) || absl::IsInternal(status);
  return from_transport && ReasonOf(status) == Reason::kUnspecified;
}

absl::StatusOr<v1::StreamEnd::Reason> FollowJob(Client& client, const FollowOptions& options) {
  return Follower(client, options).Run();
}

}  // namespace traind::client
