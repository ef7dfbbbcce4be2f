#include "server/jobs/job_state.h"

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::jobs {
namespace {

using State = v1::Job;

struct Row {
  v1::Job::State from;
  JobEvent event;
  v1::Job::State to;
};

// Every legal change; docs/job-lifecycle.md draws it.
constexpr Row kTable[] = {
    {State::QUEUED, JobEvent::kPlaced, State::STARTING},
    {State::QUEUED, JobEvent::kPauseRequested, State::PAUSED},
    {State::QUEUED, JobEvent::kNeverFits, State::FAILED},
    {State::QUEUED, JobEvent::kCancelRequested, State::CANCELLED},

    {State::STARTING, JobEvent::kAllRanksStepped, State::RUNNING},
    {State::STARTING, JobEvent::kAttemptLostRetry, State::QUEUED},
    {State::STARTING, JobEvent::kAttemptLostFinal, State::FAILED},
    {State::STARTING, JobEvent::kPauseRequested, State::PAUSING},
    {State::STARTING, JobEvent::kCancelRequested, State::CANCELLING},

    {State::RUNNING, JobEvent::kAttemptLostRetry, State::QUEUED},
    {State::RUNNING, JobEvent::kAttemptLostFinal, State::FAILED},
    {State::RUNNING, JobEvent::kPauseRequested, State::PAUSING},
    {State::RUNNING, JobEvent::kCancelRequested, State::CANCELLING},
    {State::RUNNING, JobEvent::kFinished, State::SUCCEEDED},

    {State::PAUSING, JobEvent::kPaused, State::PAUSED},
    {State::PAUSING, JobEvent::kCancelRequested, State::CANCELLING},
    {State::PAUSING, JobEvent::kFinished, State::SUCCEEDED},
    {State::PAUSING, JobEvent::kAttemptLostFinal, State::FAILED},

    {State::PAUSED, JobEvent::kResumeRequested, State::QUEUED},
    {State::PAUSED, JobEvent::kCancelRequested, State::CANCELLED},

    {State::CANCELLING, JobEvent::kCancelRequested, State::CANCELLING},
    {State::CANCELLING, JobEvent::kFinished, State::SUCCEEDED},
    {State::CANCELLING, JobEvent::kWorkersGone, State::CANCELLED},
};

absl::string_view EventText(JobEvent event) {
  switch (event) {
    case JobEvent::kPlaced:
      return "be placed";
    case JobEvent::kAllRanksStepped:
      return "begin to run";
    case JobEvent::kAttemptLostRetry:
      return "be tried again";
    case JobEvent::kAttemptLostFinal:
      return "fail";
    case JobEvent::kNeverFits:
      return "be refused";
    case JobEvent::kPauseRequested:
      return "be paused";
    case JobEvent::kPaused:
      return "have paused";
    case JobEvent::kResumeRequested:
      return "be resumed";
    case JobEvent::kCancelRequested:
      return "be cancelled";
    case JobEvent::kWorkersGone:
      return "lose its workers";
    case JobEvent::kFinished:
      return "succeed";
  }
  return "change";
}

}  // namespace

bool IsTerminal(v1::Job::State state) {
  return state == State::SUCCEEDED || state == State::FAILED || state == State::CANCELLED;
}

absl::StatusOr<v1::Job::State> Transition(v1::Job::State from, JobEvent event) {
  for (const Row& row : kTable) {
    if (row.from == from && row.event == event) return row.to;
  }
  // A state that a newer daemon stored has no name here.
  std::string state = v1::Job::State_Name(from);
  if (state.empty()) state = absl::StrCat(static_cast<int>(from));
  const Reason reason =
      event == JobEvent::kCancelRequested ? Reason::kJobNotCancellable : Reason::kBug;
  return Error(absl::StatusCode::kFailedPrecondition, reason,
               absl::StrCat("a job in state ", state, " cannot ", EventText(event)),
               {{"state", state}});
}

}  // namespace traind::jobs
