#include "server/jobs/job_changes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/names/resource_name.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"
#include "server/jobs/job_state.h"

namespace traind::jobs {
namespace {

using Report = worker::v1::Report;
using Finished = worker::v1::Finished;

constexpr int kDefaultMaxRetries = 3;

google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  const int64_t nanos = absl::ToUnixNanos(time);
  google::protobuf::Timestamp timestamp;
  timestamp.set_seconds(absl::ToUnixSeconds(time));
  timestamp.set_nanos(static_cast<int32_t>(nanos - timestamp.seconds() * 1'000'000'000));
  return timestamp;
}

// Builds one update step by step.
class Change {
 public:
  Change(const JobRecord& record, absl::Time now) : now_(ToTimestamp(now)), when_(now_) {
    update_.job = record.job;
    *update_.job.mutable_update_time() = now_;
    if (!record.attempts.empty()) update_.attempt = record.attempts.back();
  }

  v1::Job& job() { return update_.job; }
  v1::Attempt& attempt() { return *update_.job.mutable_attempt(); }
  storage::v1::AttemptRecord& attempt_record() { return *update_.attempt; }
  const google::protobuf::Timestamp& now() const { return now_; }
  const google::protobuf::Timestamp& event_time() const { return when_; }

  // Events from here on happened at `when`.
  void SetEventTime(const google::protobuf::Timestamp& when) { when_ = when; }

  v1::Event& AddEvent() {
    v1::Event& event = update_.events.emplace_back();
    *event.mutable_time() = when_;
    event.set_attempt(update_.attempt ? update_.attempt->number() : 0);
    return event;
  }

  void AddNotice(const std::string& message) {
    v1::Notice& notice = *AddEvent().mutable_notice();
    notice.set_severity(v1::Notice::INFO);
    notice.set_message(message);
  }

  // Moves the job along the table and tells why; `why` may be OK.
  absl::Status Move(JobEvent event, const absl::Status& why = absl::OkStatus()) {
    const v1::Job::State from = update_.job.state();
    TRAIND_ASSIGN_OR_RETURN(const v1::Job::State to, Transition(from, event));
    update_.job.set_state(to);
    v1::StateChange& change = *AddEvent().mutable_state_change();
    change.set_from(from);
    change.set_to(to);
    if (!why.ok()) Explain(why, change);
    if (IsTerminal(to)) *update_.job.mutable_end_time() = now_;
    if (to != v1::Job::QUEUED) update_.job.clear_pending_reason();
    if (to == v1::Job::FAILED || to == v1::Job::CANCELLED) {
      *update_.job.mutable_error() = ToRpcStatus(why);
    }
    return absl::OkStatus();
  }

  // The attempt is over. The first reason that is known stays.
  void EndAttempt(const absl::Status& why) {
    attempt_record().set_ended(true);
    if (!attempt().has_end_time()) *attempt().mutable_end_time() = now_;
    if (!why.ok() && !attempt().has_error()) *attempt().mutable_error() = ToRpcStatus(why);
  }

  JobUpdate Take() { return std::move(update_); }

 private:
  static void Explain(const absl::Status& why, v1::StateChange& change) {
    const Reason reason = ReasonOf(why);
    if (reason != Reason::kUnspecified) change.set_reason(std::string(ReasonName(reason)));
    change.set_message(std::string(why.message()));
    *change.mutable_error() = ToRpcStatus(why);
  }

  JobUpdate update_;
  google::protobuf::Timestamp now_;
  google::protobuf::Timestamp when_;
};

absl::Status CancelledByUser() {
  return Error(absl::StatusCode::kCancelled, Reason::kCancelledByUser, "cancelled by a user");
}

int MaxRetries(const v1::Job& job) {
  return job.resources().has_max_retries() ? job.resources().max_retries() : kDefaultMaxRetries;
}

// Another try may help only if the guilty party is the machine, not the job.
bool MayRetry(const v1::Job& job, const storage::v1::AttemptRecord& attempt,
              const absl::Status& why) {
  const Reason reason = ReasonOf(why);
  const bool machine = reason == Reason::kWorkerLost || reason == Reason::kLaunchFailed;
  return machine && attempt.number() <= MaxRetries(job);
}

// Seconds for the updates that are left, at the pace of the newest report.
double EtaSeconds(const v1::StepMetrics& metrics, int64_t previous_step, int64_t total_steps) {
  const double updates = static_cast<double>(metrics.step() - previous_step);
  const double left = static_cast<double>(total_steps - metrics.step());
  const double seconds = static_cast<double>(metrics.tokens()) / metrics.tokens_per_second();
  if (updates <= 0 || left <= 0 || !std::isfinite(seconds)) return 0;
  return left * seconds / updates;
}

absl::Status ApplyStep(Change& change, const v1::StepMetrics& metrics) {
  v1::Attempt& attempt = change.attempt();
  if (!attempt.has_first_step_time()) {
    *attempt.mutable_first_step_time() = change.event_time();
  }
  if (change.job().state() == v1::Job::STARTING) {
    TRAIND_RETURN_IF_ERROR(change.Move(JobEvent::kAllRanksStepped));
  }
  v1::Progress& progress = *change.job().mutable_progress();
  if (metrics.total_steps() > 0) progress.set_total_steps(metrics.total_steps());
  progress.set_eta_seconds(EtaSeconds(metrics, attempt.step(), progress.total_steps()));
  progress.set_step(metrics.step());
  progress.set_epoch(metrics.epoch());
  progress.set_loss(metrics.loss());
  progress.set_tokens_per_second(metrics.tokens_per_second());
  progress.set_tokens(progress.tokens() + metrics.tokens());
  progress.set_peak_memory_bytes(
      std::max(progress.peak_memory_bytes(), metrics.peak_memory_bytes()));
  attempt.set_step(metrics.step());
  *change.AddEvent().mutable_step() = metrics;
  return absl::OkStatus();
}

void ApplyPlan(Change& change, const v1::TrainingPlan& plan) {
  *change.job().mutable_plan() = plan;
  change.job().mutable_progress()->set_total_steps(plan.total_steps());
  *change.AddEvent().mutable_plan() = plan;
}

void ApplyResumed(Change& change, int64_t step) {
  change.attempt().set_start_step(step);
  change.attempt().set_step(step);
  change.job().mutable_progress()->set_step(step);
  if (step > 0) change.AddNotice(absl::StrCat("continues after update ", step));
}

absl::Status ApplySuccess(Change& change, const Finished& finished) {
  change.EndAttempt(absl::OkStatus());
  change.job().set_adapter_path(finished.adapter_path());
  change.job().mutable_progress()->set_eta_seconds(0);
  // An attempt that resumed after the last update has no update to report.
  if (change.job().state() == v1::Job::STARTING) {
    TRAIND_RETURN_IF_ERROR(change.Move(JobEvent::kAllRanksStepped));
  }
  return change.Move(JobEvent::kFinished);
}

absl::Status ApplyFailure(Change& change, const Finished& finished) {
  absl::Status why = FromRpcStatus(finished.error());
  if (why.ok()) {
    why = Error(absl::StatusCode::kInternal, Reason::kBug, "the worker failed without an error");
  }
  change.EndAttempt(why);
  // A job that is being cancelled ends as cancelled, once its processes are gone.
  if (change.job().state() == v1::Job::CANCELLING) return absl::OkStatus();
  return change.Move(JobEvent::kAttemptLostFinal, why);
}

absl::Status ApplyFinished(Change& change, const Finished& finished) {
  switch (finished.result()) {
    case Finished::SUCCEEDED:
      return ApplySuccess(change, finished);
    case Finished::STOPPED:
      change.EndAttempt(absl::OkStatus());
      return absl::OkStatus();
    case Finished::FAILED:
    case Finished::RESULT_UNSPECIFIED:
    default:
      return ApplyFailure(change, finished);
  }
}

absl::Status ApplyReport(Change& change, const Report& report) {
  switch (report.kind_case()) {
    case Report::kPhase:
      change.attempt().set_phase(report.phase());
      change.AddEvent().mutable_phase_change()->set_phase(report.phase());
      return absl::OkStatus();
    case Report::kPlan:
      ApplyPlan(change, report.plan());
      return absl::OkStatus();
    case Report::kStep:
      return ApplyStep(change, report.step());
    case Report::kEval:
      change.job().mutable_progress()->set_eval_loss(report.eval().loss());
      *change.AddEvent().mutable_eval() = report.eval();
      return absl::OkStatus();
    case Report::kCheckpoint:
      *change.AddEvent().mutable_checkpoint() = report.checkpoint();
      return absl::OkStatus();
    case Report::kSample:
      *change.AddEvent().mutable_sample() = report.sample();
      return absl::OkStatus();
    case Report::kNotice:
      *change.AddEvent().mutable_notice() = report.notice();
      return absl::OkStatus();
    case Report::kFinished:
      return ApplyFinished(change, report.finished());
    case Report::kResumed:
      ApplyResumed(change, report.resumed().step());
      return absl::OkStatus();
    case Report::KIND_NOT_SET:  // A kind of a newer worker: counted as seen.
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

bool IsNewest(const JobRecord& record, const std::string& attempt_uid, int64_t fencing_token) {
  return !record.attempts.empty() && record.attempts.back().uid() == attempt_uid &&
         record.attempts.back().fencing_token() == fencing_token;
}

// A worker whose last reports were committed, but whose answer got lost, sends them again, even if
// its job has ended by them.
bool AreCommitted(const JobRecord& record, const std::string& attempt_uid, int64_t fencing_token,
                  const std::vector<Report>& reports) {
  return IsNewest(record, attempt_uid, fencing_token) &&
         std::all_of(reports.begin(), reports.end(), [&](const Report& report) {
           return report.number() <= record.attempts.back().acknowledged_report();
         });
}

absl::Status MissingReport(int64_t expected, int64_t got) {
  return Error(absl::StatusCode::kOutOfRange, Reason::kSequenceOutOfRange,
               absl::StrCat("report ", expected, " is missing before report ", got,
                            "; send again from there"),
               {{"expected", absl::StrCat(expected)}, {"got", absl::StrCat(got)}});
}

// What ended the attempt: the worker's own word first, then what the daemon saw.
absl::Status WhyLost(const JobRecord& record, const absl::Status& why) {
  const v1::Attempt& attempt = record.job.attempt();
  if (attempt.has_error()) return FromRpcStatus(attempt.error());
  if (!why.ok()) return why;
  return Error(absl::StatusCode::kUnavailable, Reason::kWorkerLost,
               "the worker ended before its job was done");
}

}  // namespace

void MergeUpdate(const JobUpdate& update, const v1::Job& stored, JobRecord& record) {
  record.job = stored;
  if (!update.attempt) return;
  for (storage::v1::AttemptRecord& attempt : record.attempts) {
    if (attempt.number() != update.attempt->number()) continue;
    attempt = *update.attempt;
    return;
  }
  record.attempts.push_back(*update.attempt);
}

JobUpdate QueuedJob(v1::Job job, absl::Time now) {
  JobRecord record;
  v1::Job& fresh = record.job;
  fresh.set_name(job.name());
  fresh.set_uid(job.uid());
  fresh.set_owner(job.owner());
  fresh.set_priority(job.priority());
  fresh.set_display_name(job.display_name());
  fresh.mutable_spec()->Swap(job.mutable_spec());
  fresh.mutable_labels()->swap(*job.mutable_labels());
  fresh.mutable_resources()->Swap(job.mutable_resources());
  fresh.set_state(v1::Job::QUEUED);
  Change change(record, now);
  *change.job().mutable_create_time() = change.now();
  change.AddEvent().mutable_state_change()->set_to(v1::Job::QUEUED);
  return change.Take();
}

absl::StatusOr<JobUpdate> PlaceJob(const JobRecord& record, const Placement& placement,
                                   absl::Time now) {
  storage::v1::AttemptRecord attempt_record;
  attempt_record.set_uid(placement.attempt_uid);
  attempt_record.set_number(1);
  attempt_record.set_fencing_token(1);
  if (!record.attempts.empty()) {
    attempt_record.set_number(record.attempts.back().number() + 1);
    attempt_record.set_fencing_token(record.attempts.back().fencing_token() + 1);
  }
  JobRecord with_attempt{record.job, {attempt_record}};
  Change change(with_attempt, now);
  v1::Attempt& attempt = change.attempt();
  attempt.Clear();
  attempt.set_name(AttemptName(record.job.name(), attempt_record.number()));
  attempt.set_uid(placement.attempt_uid);
  attempt.set_phase(v1::Attempt::LAUNCHING);
  attempt.set_node(placement.node);
  attempt.mutable_devices()->Assign(placement.devices.begin(), placement.devices.end());
  *attempt.mutable_create_time() = change.now();
  TRAIND_RETURN_IF_ERROR(change.Move(JobEvent::kPlaced));
  return change.Take();
}

JobUpdate WorkerLaunched(const JobRecord& record, const WorkerProcess& process, absl::Time now) {
  Change change(record, now);
  change.attempt_record().set_pid(process.pid);
  change.attempt_record().set_pid_start_ticks(process.start_ticks);
  change.attempt_record().set_boot_id(process.boot_id);
  return change.Take();
}

std::optional<JobUpdate> Waits(const JobRecord& record, const std::string& reason, absl::Time now) {
  if (record.job.state() != v1::Job::QUEUED || record.job.pending_reason() == reason) {
    return std::nullopt;
  }
  Change change(record, now);
  change.job().set_pending_reason(reason);
  return change.Take();
}

absl::StatusOr<JobUpdate> NeverFits(const JobRecord& record, const absl::Status& why,
                                    absl::Time now) {
  Change change(record, now);
  TRAIND_RETURN_IF_ERROR(change.Move(JobEvent::kNeverFits, why));
  return change.Take();
}

absl::Status CheckFencing(const JobRecord& record, const std::string& attempt_uid,
                          int64_t fencing_token) {
  const bool runs = !IsTerminal(record.job.state()) && record.job.state() != v1::Job::QUEUED &&
                    record.job.state() != v1::Job::PAUSED;
  if (runs && IsNewest(record, attempt_uid, fencing_token)) return absl::OkStatus();
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kAttemptFenced,
               absl::StrCat("attempt ", attempt_uid, " of ", record.job.name(),
                            " is no longer the current one and must stop"),
               {{"attempt_uid", attempt_uid}, {"job", record.job.name()}});
}

absl::StatusOr<std::optional<JobUpdate>> ApplyReports(const JobRecord& record,
                                                      const std::string& attempt_uid,
                                                      int64_t fencing_token,
                                                      const std::vector<Report>& reports,
                                                      absl::Time now) {
  if (AreCommitted(record, attempt_uid, fencing_token, reports)) return std::nullopt;
  TRAIND_RETURN_IF_ERROR(CheckFencing(record, attempt_uid, fencing_token));
  Change change(record, now);
  const int64_t committed = change.attempt_record().acknowledged_report();
  for (const Report& report : reports) {
    const int64_t expected = change.attempt_record().acknowledged_report() + 1;
    if (report.number() < expected) continue;
    if (report.number() > expected) return MissingReport(expected, report.number());
    change.attempt_record().set_acknowledged_report(report.number());
    // Nothing that comes after its end may change an ended attempt.
    if (change.attempt_record().ended()) continue;
    change.SetEventTime(report.has_time() ? report.time() : change.now());
    TRAIND_RETURN_IF_ERROR(ApplyReport(change, report));
  }
  if (change.attempt_record().acknowledged_report() == committed) return std::nullopt;
  return change.Take();
}

absl::StatusOr<std::optional<JobUpdate>> AttemptLost(const JobRecord& record,
                                                     const absl::Status& why, absl::Time now) {
  const v1::Job::State state = record.job.state();
  const bool has_attempt = !record.attempts.empty();
  if (!has_attempt || IsTerminal(state) || state == v1::Job::QUEUED || state == v1::Job::PAUSED) {
    return std::nullopt;
  }
  Change change(record, now);
  if (state == v1::Job::CANCELLING) {
    change.EndAttempt(CancelledByUser());
    TRAIND_RETURN_IF_ERROR(change.Move(JobEvent::kWorkersGone, CancelledByUser()));
    return change.Take();
  }
  const absl::Status lost = WhyLost(record, why);
  change.EndAttempt(lost);
  const bool retry = MayRetry(record.job, record.attempts.back(), lost);
  TRAIND_RETURN_IF_ERROR(
      change.Move(retry ? JobEvent::kAttemptLostRetry : JobEvent::kAttemptLostFinal, lost));
  return change.Take();
}

std::optional<JobUpdate> RequestCancel(const JobRecord& record, absl::Time now) {
  if (IsTerminal(record.job.state()) || record.job.state() == v1::Job::CANCELLING) {
    return std::nullopt;
  }
  Change change(record, now);
  if (!change.Move(JobEvent::kCancelRequested, CancelledByUser()).ok()) return std::nullopt;
  return change.Take();
}

}  // namespace traind::jobs
