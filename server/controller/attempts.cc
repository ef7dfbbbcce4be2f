// The life of attempts: placed, started, ended, and found again after a restart.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/os/fault_point.h"
#include "common/status/errors.h"
#include "server/artifacts/job_paths.h"
#include "server/controller/controller.h"
#include "server/jobs/job_changes.h"
#include "server/jobs/job_state.h"

namespace traind::controller {
namespace {

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

absl::Duration MaxRuntime(const v1::Job& job) {
  const auto& limit = job.resources().max_runtime();
  return absl::Seconds(limit.seconds()) + absl::Nanoseconds(limit.nanos());
}

absl::Status TimeIsUp(const v1::Job& job) {
  const std::string limit = absl::FormatDuration(MaxRuntime(job));
  return Error(absl::StatusCode::kDeadlineExceeded, Reason::kTimeLimit,
               absl::StrCat("the attempt ran longer than resources.max_runtime (", limit,
                            ") and was stopped; its checkpoints are kept"),
               {{"max_runtime", limit}});
}

scheduler::QueuedJob ToQueuedJob(const v1::Job& job) {
  scheduler::QueuedJob queued;
  queued.uid = job.uid();
  queued.name = job.name();
  queued.priority = job.priority();
  queued.create_time = ToTime(job.create_time());
  queued.devices = job.resources().has_devices() ? job.resources().devices() : 1;
  queued.device_type = job.resources().device_type();
  if (queued.device_type.empty()) queued.device_type = "auto";
  return queued;
}

}  // namespace

absl::Status Controller::Start() {
  TRAIND_ASSIGN_OR_RETURN(std::vector<store::JobRecord> records, store_.LoadActiveJobs());
  TRAIND_ASSIGN_OR_RETURN(const auto counts, store_.CountJobs());
  metrics_.SetJobCounts(counts);
  std::set<std::string> known;
  for (store::JobRecord& record : records) {
    if (record.job.state() != v1::Job::QUEUED && !record.attempts.empty()) {
      known.insert(record.attempts.back().uid());
    }
    active_[record.job.uid()] = std::move(record);
  }
  supervisor_.KillStrays(known);
  for (auto& [job_uid, record] : active_) {
    events_.Publish(job_uid, record.job.last_sequence());
    if (known.count(record.attempts.empty() ? "" : record.attempts.back().uid()) > 0) {
      Recover(record);
    }
  }
  queue_.Post([this] { Schedule(); });
  queue_.Start();
  return absl::OkStatus();
}

void Controller::Recover(jobs::JobRecord& record) {
  const storage::v1::AttemptRecord& attempt = record.attempts.back();
  const auto& devices = record.job.attempt().devices();
  holdings_[attempt.uid()] = {record.job.uid(), {devices.begin(), devices.end()}};
  const auto paths = artifacts::JobPaths::ForJob(options_.worker.state_dir, record.job.uid());
  supervisor::EarlierWorker worker;
  worker.attempt_uid = attempt.uid();
  worker.attempt_dir = paths.ok() ? paths->attempt_dir(attempt.number()) : "";
  worker.identity = {attempt.pid(), attempt.pid_start_ticks(), attempt.boot_id()};
  const bool watched = supervisor_.ReattachWorker(worker);
  Log(LogLevel::kInfo, "worker.reattached",
      {{"job", record.job.name()},
       {"attempt", attempt.uid()},
       {"pid", absl::StrCat(attempt.pid())}});
  if (watched) {
    WatchTimeLimit(record);
    // The stop command may have got lost with the daemon that sent it.
    if (record.job.state() == v1::Job::CANCELLING) {
      supervisor_.StopWorker(attempt.uid(), /*checkpoint=*/true, options_.cancel_grace);
    }
  } else if (record.job.state() == v1::Job::STARTING) {
    Launch(record);
  } else {
    queue_.Post([this, uid = attempt.uid()] { EndAttempt(uid, absl::OkStatus()); });
  }
}

void Controller::Schedule() {
  const absl::Time start = clock_.SteadyNow();
  const scheduler::Plan plan = scheduler::MakePlan(TakeSnapshot());
  metrics_.ObserveSchedulerCycle(clock_.SteadyNow() - start);
  const absl::Status applied = ApplyPlan(plan);
  if (applied.ok()) return;
  Log(LogLevel::kWarn, "schedule.delayed", {{"error", std::string(applied.message())}});
  queue_.PostAt(clock_.Now() + options_.retry_interval, [this] { Schedule(); });
}

scheduler::Snapshot Controller::TakeSnapshot() const {
  scheduler::Snapshot snapshot;
  for (const auto& [job_uid, record] : active_) {
    if (record.job.state() == v1::Job::QUEUED) snapshot.queue.push_back(ToQueuedJob(record.job));
  }
  snapshot.devices = options_.devices;
  for (const auto& [attempt_uid, holding] : holdings_) {
    for (scheduler::Device& device : snapshot.devices) {
      const auto& held = holding.devices;
      if (std::count(held.begin(), held.end(), device.id) == 0) continue;
      device.holder = active_.at(holding.job_uid).job.name();
    }
  }
  return snapshot;
}

absl::Status Controller::ApplyPlan(const scheduler::Plan& plan) {
  for (const scheduler::Assignment& assignment : plan.assignments) {
    TRAIND_RETURN_IF_ERROR(Place(active_.at(assignment.job_uid), assignment.devices));
  }
  for (const scheduler::Waiting& waiting : plan.waiting) {
    jobs::JobRecord& record = active_.at(waiting.job_uid);
    const auto update = jobs::Waits(record, waiting.reason, clock_.Now());
    if (update) TRAIND_RETURN_IF_ERROR(Commit(record, *update, "wait"));
  }
  for (const scheduler::Impossible& impossible : plan.impossible) {
    jobs::JobRecord& record = active_.at(impossible.job_uid);
    TRAIND_ASSIGN_OR_RETURN(const jobs::JobUpdate update,
                            jobs::NeverFits(record, impossible.why, clock_.Now()));
    TRAIND_RETURN_IF_ERROR(Commit(record, update, "fail"));
    ForgetIfOver(impossible.job_uid);
  }
  return absl::OkStatus();
}

absl::Status Controller::Place(jobs::JobRecord& record, const std::vector<std::string>& devices) {
  const jobs::Placement placement{NewUuid(), options_.node, devices};
  TRAIND_ASSIGN_OR_RETURN(const jobs::JobUpdate update,
                          jobs::PlaceJob(record, placement, clock_.Now()));
  TRAIND_RETURN_IF_ERROR(Commit(record, update, "place"));
  holdings_[placement.attempt_uid] = {record.job.uid(), devices};
  TRAIND_RETURN_IF_ERROR(FaultPoint("controller.after_place"));
  Launch(record);
  return absl::OkStatus();
}

void Controller::Launch(jobs::JobRecord& record) {
  const std::string attempt_uid = record.attempts.back().uid();
  const absl::Status launched = TryLaunch(record);
  if (launched.ok()) return WatchTimeLimit(record);
  Log(LogLevel::kError, "worker.start_failed",
      {{"job", record.job.name()},
       {"attempt", attempt_uid},
       {"error", std::string(launched.message())}});
  queue_.Post([=, this] { EndAttempt(attempt_uid, launched); });
}

absl::Status Controller::TryLaunch(jobs::JobRecord& record) {
  TRAIND_ASSIGN_OR_RETURN(const worker::v1::WorkerAssignment assignment,
                          MakeAssignment(record, options_.worker));
  TRAIND_ASSIGN_OR_RETURN(const artifacts::JobPaths paths,
                          artifacts::JobPaths::ForJob(options_.worker.state_dir, record.job.uid()));
  TRAIND_RETURN_IF_ERROR(artifacts::CreateAttemptFolders(paths, assignment.attempt()));
  TRAIND_ASSIGN_OR_RETURN(const ProcessIdentity process, supervisor_.StartWorker(assignment));
  TRAIND_RETURN_IF_ERROR(FaultPoint("controller.after_start"));
  const jobs::WorkerProcess launched{process.pid, process.start_ticks, process.boot_id};
  const absl::Status noted =
      Commit(record, jobs::WorkerLaunched(record, launched, clock_.Now()), "launch");
  // Not worth the worker's life: after a restart its mark tells it as well.
  if (!noted.ok()) {
    Log(LogLevel::kWarn, "worker.process_not_noted",
        {{"attempt", assignment.attempt_uid()}, {"error", std::string(noted.message())}});
  }
  return absl::OkStatus();
}

void Controller::WatchTimeLimit(const jobs::JobRecord& record) {
  if (!record.job.resources().has_max_runtime()) return;
  const absl::Time limit = ToTime(record.job.attempt().create_time()) + MaxRuntime(record.job);
  queue_.PostAt(limit, [this, uid = record.attempts.back().uid()] { EndForTimeLimit(uid); });
}

void Controller::EndForTimeLimit(const std::string& attempt_uid) {
  const auto holding = holdings_.find(attempt_uid);
  if (holding == holdings_.end()) return;
  holding->second.time_is_up = true;
  supervisor_.StopWorker(attempt_uid, /*checkpoint=*/true, options_.time_limit_grace);
}

void Controller::EndAttempt(const std::string& attempt_uid, const absl::Status& why) {
  jobs::JobRecord* record = FindByAttempt(attempt_uid);
  if (record == nullptr) return;
  const bool time_is_up = holdings_[attempt_uid].time_is_up;
  const auto update =
      jobs::AttemptLost(*record, time_is_up ? TimeIsUp(record->job) : why, clock_.Now());
  absl::Status committed;
  if (!update.ok()) {
    metrics_.OnBug();
    Log(LogLevel::kError, "attempt.end_refused",
        {{"attempt", attempt_uid}, {"error", std::string(update.status().message())}});
  } else if (*update) {
    committed = Commit(*record, **update, "end");
  }
  if (!committed.ok()) {
    Log(LogLevel::kError, "attempt.end_delayed",
        {{"attempt", attempt_uid}, {"error", std::string(committed.message())}});
    queue_.PostAt(clock_.Now() + options_.retry_interval,
                  [=, this] { EndAttempt(attempt_uid, why); });
    return;
  }
  const std::string job_uid = record->job.uid();
  holdings_.erase(attempt_uid);
  ForgetIfOver(job_uid);
  Schedule();
}

}  // namespace traind::controller
