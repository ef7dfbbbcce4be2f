#include "server/controller/controller.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/log/log.h"
#include "common/names/resource_name.h"
#include "common/os/fault_point.h"
#include "common/status/errors.h"
#include "server/artifacts/job_paths.h"
#include "server/controller/request_hash.h"
#include "server/jobs/job_changes.h"
#include "server/jobs/job_state.h"

namespace traind::controller {
namespace {

absl::Status Draining() {
  return Error(absl::StatusCode::kUnavailable, Reason::kDraining,
               "the daemon is stopping; try again");
}

absl::Status Fenced(const std::string& attempt_uid) {
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kAttemptFenced,
               absl::StrCat("attempt ", attempt_uid, " is over"), {{"attempt_uid", attempt_uid}});
}

absl::Status CheckEtag(const v1::Job& job, const std::string& etag) {
  if (etag.empty() || etag == job.etag()) return absl::OkStatus();
  return Error(absl::StatusCode::kAborted, Reason::kEtagMismatch,
               absl::StrCat(job.name(), " has changed: its etag is ", job.etag(), ", not ", etag,
                            "; read it again"),
               {{"name", job.name()}, {"etag", job.etag()}, {"expected", etag}});
}

absl::Status NotDeletable(const v1::Job& job, absl::string_view what_to_do) {
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kJobNotDeletable,
               absl::StrCat(job.name(), " is ", v1::Job::State_Name(job.state()),
                            " and cannot be deleted; ", what_to_do),
               {{"name", job.name()}, {"state", v1::Job::State_Name(job.state())}});
}

void LogStateChange(const v1::Job& job, const v1::Event& event) {
  const v1::StateChange& change = event.state_change();
  Log(LogLevel::kInfo, "job.state_changed",
      {{"job", job.name()},
       {"attempt", absl::StrCat(event.attempt())},
       {"from", v1::Job::State_Name(change.from())},
       {"to", v1::Job::State_Name(change.to())},
       {"reason", change.reason()}},
      change.message());
}

}  // namespace

Controller::Controller(ControllerOptions options, const ControllerParts& parts)
    : options_(std::move(options)),
      store_(parts.store),
      supervisor_(parts.supervisor),
      events_(parts.events),
      metrics_(parts.metrics),
      clock_(parts.clock),
      queue_(parts.clock) {}

Controller::~Controller() { Stop(); }

absl::StatusOr<v1::Job> Controller::CreateJob(const v1::CreateJobRequest& request,
                                              const std::string& owner) {
  using metrics::SubmitResult;
  const absl::Time start = clock_.SteadyNow();
  auto result = queue_.Run([&] { return DoCreate(request, owner); });
  const absl::StatusOr<store::CreateResult> created = result ? *std::move(result) : Draining();
  if (!created.ok()) {
    metrics_.OnSubmitted(SubmitResult::kRejected, absl::ZeroDuration());
    return created.status();
  }
  metrics_.OnSubmitted(created->replayed ? SubmitResult::kReplayed : SubmitResult::kAccepted,
                       clock_.SteadyNow() - start);
  return created->job;
}

absl::StatusOr<v1::Job> Controller::CancelJob(const std::string& name, const std::string& etag) {
  auto result = queue_.Run([&] { return DoCancel(name, etag); });
  return result ? *std::move(result) : Draining();
}

absl::Status Controller::DeleteJob(const std::string& name, const std::string& etag) {
  auto result = queue_.Run([&] { return DoDelete(name, etag); });
  return result ? *std::move(result) : Draining();
}

std::vector<JobController::DeviceUse> Controller::ListDeviceUse() {
  return queue_.Run([&] { return DoListDeviceUse(); }).value_or(std::vector<DeviceUse>());
}

absl::StatusOr<int64_t> Controller::OnHello(const worker::v1::Hello& hello) {
  auto result = queue_.Run([&] { return DoHello(hello); });
  return result ? *std::move(result) : Draining();
}

absl::StatusOr<int64_t> Controller::OnReports(const std::string& attempt_uid, int64_t fencing_token,
                                              const std::vector<worker::v1::Report>& reports) {
  auto result = queue_.Run([&] { return DoReports(attempt_uid, fencing_token, reports); });
  return result ? *std::move(result) : Draining();
}

void Controller::OnWorkerGone(const std::string& attempt_uid, const absl::Status& why) {
  // If the daemon is stopping, the next one finds the worker gone.
  queue_.Post([=, this] { EndAttempt(attempt_uid, why); });
}

absl::StatusOr<store::CreateResult> Controller::DoCreate(const v1::CreateJobRequest& request,
                                                         const std::string& owner) {
  const absl::Time now = clock_.Now();
  const store::RequestId id{request.request_id(), HashRequest(request, owner), now};
  if (QueueIsFull()) return ReplayOrRefuse(id);
  v1::Job job = request.job();
  job.set_name(JobName(request.job_id().empty() ? NewJobId() : request.job_id()));
  job.set_uid(NewUuid());
  job.set_owner(owner);
  const jobs::JobUpdate update = jobs::QueuedJob(std::move(job), now);
  const absl::Time start = clock_.SteadyNow();
  TRAIND_ASSIGN_OR_RETURN(store::CreateResult created, store_.CreateJob(update, id));
  metrics_.ObserveTransaction("create", clock_.SteadyNow() - start);
  TRAIND_RETURN_IF_ERROR(FaultPoint("controller.after_create"));
  if (created.replayed) return created;
  active_[created.job.uid()].job = created.job;
  Announce(created.job, update.events);
  queue_.Post([this] { Schedule(); });
  return created;
}

bool Controller::QueueIsFull() const {
  const auto queued = std::count_if(active_.begin(), active_.end(), [](const auto& entry) {
    return entry.second.job.state() == v1::Job::QUEUED;
  });
  return queued >= options_.max_queued_jobs;
}

absl::StatusOr<store::CreateResult> Controller::ReplayOrRefuse(const store::RequestId& id) {
  // The retry of a call that went through must get its job, however many wait by now.
  if (!id.id.empty()) {
    TRAIND_ASSIGN_OR_RETURN(const std::optional<v1::Job> earlier, store_.FindRequest(id));
    if (earlier) return store::CreateResult{*earlier, /*replayed=*/true};
  }
  const std::string limit = absl::StrCat(options_.max_queued_jobs);
  return Error(absl::StatusCode::kResourceExhausted, Reason::kQueueFull,
               absl::StrCat(limit,
                            " jobs wait already, as many as max_queued_jobs allows; try "
                            "again when some have started"),
               {{"limit", limit}});
}

absl::StatusOr<v1::Job> Controller::DoCancel(const std::string& name, const std::string& etag) {
  jobs::JobRecord* record = FindActive(name);
  if (record == nullptr) {
    TRAIND_ASSIGN_OR_RETURN(store::JobRecord ended, store_.GetJob(name));
    TRAIND_RETURN_IF_ERROR(CheckEtag(ended.job, etag));
    return ended.job;
  }
  TRAIND_RETURN_IF_ERROR(CheckEtag(record->job, etag));
  const std::optional<jobs::JobUpdate> update = jobs::RequestCancel(*record, clock_.Now());
  if (!update) return record->job;
  TRAIND_RETURN_IF_ERROR(Commit(*record, *update, "cancel"));
  const v1::Job job = record->job;
  if (job.state() == v1::Job::CANCELLING) {
    supervisor_.StopWorker(record->attempts.back().uid(), /*checkpoint=*/true,
                           options_.cancel_grace);
  }
  ForgetIfOver(job.uid());
  queue_.Post([this] { Schedule(); });
  return job;
}

absl::Status Controller::DoDelete(const std::string& name, const std::string& etag) {
  TRAIND_ASSIGN_OR_RETURN(const store::JobRecord record, store_.GetJob(name));
  const v1::Job& job = record.job;
  TRAIND_RETURN_IF_ERROR(CheckEtag(job, etag));
  if (!jobs::IsTerminal(job.state())) return NotDeletable(job, "cancel it first");
  if (IsHeld(job.uid())) return NotDeletable(job, "its worker is still leaving; try again");
  TRAIND_RETURN_IF_ERROR(store_.DeleteJob(name));
  metrics_.OnDeleted(job.state());
  events_.Forget(job.uid());
  TRAIND_ASSIGN_OR_RETURN(const artifacts::JobPaths paths,
                          artifacts::JobPaths::ForJob(options_.worker.state_dir, job.uid()));
  const absl::Status removed = artifacts::RemoveJobFolder(paths);
  if (!removed.ok()) {
    // The job is gone for good; a folder that stays is an operator's matter, not the caller's.
    Log(LogLevel::kError, "job.folder_kept",
        {{"job", name}, {"error", std::string(removed.message())}});
  }
  return absl::OkStatus();
}

std::vector<JobController::DeviceUse> Controller::DoListDeviceUse() {
  std::vector<DeviceUse> uses;
  for (const scheduler::Device& device : TakeSnapshot().devices) {
    uses.push_back({device.id, device.holder});
  }
  return uses;
}

absl::StatusOr<int64_t> Controller::DoHello(const worker::v1::Hello& hello) {
  const jobs::JobRecord* record = FindByAttempt(hello.attempt_uid());
  if (record == nullptr) return Fenced(hello.attempt_uid());
  TRAIND_RETURN_IF_ERROR(jobs::CheckFencing(*record, hello.attempt_uid(), hello.fencing_token()));
  return record->attempts.back().acknowledged_report();
}

absl::StatusOr<int64_t> Controller::DoReports(const std::string& attempt_uid, int64_t fencing_token,
                                              const std::vector<worker::v1::Report>& reports) {
  jobs::JobRecord* record = FindByAttempt(attempt_uid);
  if (record == nullptr) return Fenced(attempt_uid);
  TRAIND_ASSIGN_OR_RETURN(
      const std::optional<jobs::JobUpdate> update,
      jobs::ApplyReports(*record, attempt_uid, fencing_token, reports, clock_.Now()));
  if (update) {
    TRAIND_RETURN_IF_ERROR(Commit(*record, *update, "reports"));
    TRAIND_RETURN_IF_ERROR(FaultPoint("controller.after_reports"));
  }
  // One that has said how it ended has no reason to stay.
  if (record->attempts.back().ended()) {
    supervisor_.StopWorker(attempt_uid, /*checkpoint=*/false, options_.cancel_grace);
  }
  return record->attempts.back().acknowledged_report();
}

absl::Status Controller::Commit(jobs::JobRecord& record, const jobs::JobUpdate& update,
                                const std::string& operation) {
  const absl::Time start = clock_.SteadyNow();
  TRAIND_ASSIGN_OR_RETURN(const v1::Job stored, store_.Commit(update));
  metrics_.ObserveTransaction(operation, clock_.SteadyNow() - start);
  jobs::MergeUpdate(update, stored, record);
  Announce(stored, update.events);
  return absl::OkStatus();
}

void Controller::Announce(const v1::Job& job, const std::vector<v1::Event>& events) {
  events_.Publish(job.uid(), job.last_sequence());
  metrics_.OnCommitted(job, events);
  for (const v1::Event& event : events) {
    if (event.has_state_change()) LogStateChange(job, event);
  }
}

void Controller::ForgetIfOver(const std::string& job_uid) {
  const auto found = active_.find(job_uid);
  if (found == active_.end() || IsHeld(job_uid)) return;
  if (jobs::IsTerminal(found->second.job.state())) active_.erase(found);
}

jobs::JobRecord* Controller::FindActive(const std::string& name) {
  const auto found = std::find_if(active_.begin(), active_.end(), [&name](const auto& entry) {
    return entry.second.job.name() == name;
  });
  return found == active_.end() ? nullptr : &found->second;
}

jobs::JobRecord* Controller::FindByAttempt(const std::string& attempt_uid) {
  const auto holding = holdings_.find(attempt_uid);
  if (holding == holdings_.end()) return nullptr;
  const auto found = active_.find(holding->second.job_uid);
  return found == active_.end() ? nullptr : &found->second;
}

bool Controller::IsHeld(const std::string& job_uid) const {
  return std::any_of(holdings_.begin(), holdings_.end(),
                     [&job_uid](const auto& entry) { return entry.second.job_uid == job_uid; });
}

std::string Controller::NewUuid() {
  const uint64_t high = absl::Uniform<uint64_t>(random_);
  const uint64_t low = absl::Uniform<uint64_t>(random_);
  // Version 4, variant 1: RFC 4122, section 4.4.
  return absl::StrFormat("%08x-%04x-4%03x-%04x-%012x", high >> 32, (high >> 16) & 0xffff,
                         high & 0xfff, ((low >> 48) & 0x3fff) | 0x8000, low & 0xffffffffffff);
}

std::string Controller::NewJobId() {
  constexpr char kLetters[] = "abcdefghijkmnpqrstuvwxyz23456789";
  std::string id = "job-";
  for (int i = 0; i < 10; ++i) id += kLetters[absl::Uniform<size_t>(random_, 0, 32)];
  return id;
}

}  // namespace traind::controller
