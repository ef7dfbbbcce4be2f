// Which changes of a job's state are legal: one table, one function. No I/O, no clock, no threads.
#pragma once

#include "absl/status/statusor.h"
#include "traind/v1/job.pb.h"

namespace traind::jobs {

// What can happen to a job.
enum class JobEvent {
  kPlaced,            // The scheduler gave it devices.
  kAllRanksStepped,   // Every rank reported its first update.
  kAttemptLostRetry,  // The attempt failed or was preempted, and a retry is left.
  kAttemptLostFinal,  // The attempt failed and no retry is left.
  kNeverFits,         // No node can ever hold it.
  kPauseRequested,
  kPaused,  // Checkpoint durable, devices free.
  kResumeRequested,
  kCancelRequested,
  kWorkersGone,  // Workers gone and devices verified free.
  kFinished,     // Artifacts durable.
};

bool IsTerminal(v1::Job::State state);

// The state after `event`. FAILED_PRECONDITION if it is not legal in `from`; every event in a
// terminal state is illegal. Cancelling twice is legal and stays CANCELLING.
absl::StatusOr<v1::Job::State> Transition(v1::Job::State from, JobEvent event);

}  // namespace traind::jobs
