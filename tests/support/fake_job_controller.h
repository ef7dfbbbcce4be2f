// A JobController over a real store that starts no workers: the test says what happens to a job.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/mutex.h"
#include "common/names/resource_name.h"
#include "common/os/clock.h"
#include "common/status/errors.h"
#include "server/controller/job_controller.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_changes.h"
#include "server/jobs/job_state.h"
#include "server/store/job_store.h"

namespace traind {

// Thread-safe.
class FakeJobController : public controller::JobController {
 public:
  FakeJobController(store::JobStore* store, events::EventHub* events, const Clock* clock)
      : store_(store), events_(events), clock_(clock) {}

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request,
                                    const std::string& owner) override {
    v1::Job job = request.job();
    const int number = NextNumber();
    job.set_name(
        JobName(request.job_id().empty() ? absl::StrCat("job-", number) : request.job_id()));
    job.set_uid(absl::StrFormat("00000000-0000-4000-8000-%012d", number));
    job.set_owner(owner);
    store::RequestId id{request.request_id(), 0, clock_->Now()};
    id.request_hash = std::hash<std::string>()(request.DebugString());
    TRAIND_ASSIGN_OR_RETURN(const store::CreateResult created,
                            store_->CreateJob(jobs::QueuedJob(job, clock_->Now()), id));
    events_->Publish(created.job.uid(), created.job.last_sequence());
    return created.job;
  }

  absl::StatusOr<v1::Job> CancelJob(const std::string& name, const std::string& etag) override {
    TRAIND_ASSIGN_OR_RETURN(const store::JobRecord record, Find(name, etag));
    const auto update = jobs::RequestCancel(record, clock_->Now());
    return update.has_value() ? Commit(*update) : record.job;
  }

  absl::Status DeleteJob(const std::string& name, const std::string& etag) override {
    TRAIND_ASSIGN_OR_RETURN(const store::JobRecord record, Find(name, etag));
    if (!jobs::IsTerminal(record.job.state())) {
      return Error(absl::StatusCode::kFailedPrecondition, Reason::kJobNotDeletable,
                   absl::StrCat(name, " has not ended; cancel it first"), {{"job", name}});
    }
    TRAIND_RETURN_IF_ERROR(store_->DeleteJob(name));
    events_->Forget(record.job.uid());
    return absl::OkStatus();
  }

  std::vector<DeviceUse> ListDeviceUse() override { return {{"cpu0", ""}, {"cpu1", "jobs/busy"}}; }

  // What the test makes happen.

  // Adds `count` reports of the loss.
  absl::StatusOr<v1::Job> AddSteps(const std::string& name, int count) {
    return Change(name, [count](jobs::JobUpdate& update) {
      for (int i = 1; i <= count; ++i) update.events.emplace_back().mutable_step()->set_step(i);
    });
  }

  // Ends the job.
  absl::StatusOr<v1::Job> Succeed(const std::string& name) {
    return Change(name, [](jobs::JobUpdate& update) {
      update.job.set_state(v1::Job::SUCCEEDED);
      update.events.emplace_back().mutable_state_change()->set_to(v1::Job::SUCCEEDED);
    });
  }

  // Sets whether attempt `number` has ended.
  absl::StatusOr<v1::Job> SetAttempt(const std::string& name, int number, bool ended) {
    return Change(name, [=](jobs::JobUpdate& update) {
      update.attempt.emplace();
      update.attempt->set_number(number);
      update.attempt->set_uid(absl::StrCat("attempt-", number));
      update.attempt->set_ended(ended);
      update.events.emplace_back().mutable_notice()->set_message("attempt");
    });
  }

 private:
  int NextNumber() {
    absl::MutexLock lock(&mutex_);
    return ++number_;
  }

  absl::StatusOr<store::JobRecord> Find(const std::string& name, const std::string& etag) {
    TRAIND_ASSIGN_OR_RETURN(store::JobRecord record, store_->GetJob(name));
    if (etag.empty() || etag == record.job.etag()) return record;
    return Error(absl::StatusCode::kAborted, Reason::kEtagMismatch,
                 absl::StrCat(name, " has changed; read it again"), {{"job", name}});
  }

  absl::StatusOr<v1::Job> Change(const std::string& name,
                                 const std::function<void(jobs::JobUpdate&)>& change) {
    TRAIND_ASSIGN_OR_RETURN(const store::JobRecord record, store_->GetJob(name));
    jobs::JobUpdate update;
    update.job = record.job;
    change(update);
    return Commit(update);
  }

  absl::StatusOr<v1::Job> Commit(const jobs::JobUpdate& update) {
    TRAIND_ASSIGN_OR_RETURN(v1::Job job, store_->Commit(update));
    events_->Publish(job.uid(), job.last_sequence());
    return job;
  }

  store::JobStore* const store_;
  events::EventHub* const events_;
  const Clock* const clock_;
  absl::Mutex mutex_;
  int number_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace traind
