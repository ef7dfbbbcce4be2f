// Follows a job over lost connections and restarts of the daemon.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/rpc/client.h"

namespace traind::client {

struct FollowOptions {
  std::string name;                                  // `jobs/{job}`
  int64_t after_sequence = 0;                        // Events up to this one are known.
  absl::Duration give_up_after = absl::Minutes(10);  // Without a message from the daemon.
  std::function<void(const v1::Event&)> on_event;    // Each event once, in order, without gaps.
  std::function<void(const absl::Status&)> on_lost;  // The connection was lost; tries again.
  std::function<void()> on_resumed;                  // The daemon answers again.
  std::function<bool()> wants_more;                  // Optional: false ends it early.
};

// Returns why the stream ended: JOB_ENDED or JOB_DELETED (or REASON_UNSPECIFIED if `wants_more`
// said no). Errors: those of WatchJob; UNAVAILABLE after `give_up_after`; CANCELLED if interrupted;
// DATA_LOSS if the daemon leaves events out.
absl::StatusOr<v1::StreamEnd::Reason> FollowJob(Client& client, const FollowOptions& options);

// Whether `status` tells of the connection rather than of the call: worth another try.
bool IsConnectionTrouble(const absl::Status& status);

// Waits between tries: 0.2 s, doubled up to 2 s. Thread-compatible.
class Backoff {
 public:
  void Reset() { next_ = kFirst; }
  absl::Duration Next();

 private:
  static constexpr absl::Duration kFirst = absl::Milliseconds(200);
  static constexpr absl::Duration kLongest = absl::Seconds(2);
  absl::Duration next_ = kFirst;
};

}  // namespace traind::client
