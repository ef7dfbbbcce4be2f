// The only writer of job state: takes requests from the API, plans from the scheduler and reports
// from workers, and turns each into one committed change.
//
// One thread does all of it, in order. What happens outside (starting and stopping workers,
// waking watchers, removing files) happens after the commit, and once more after a restart if the
// daemon died in between; it is keyed by the attempt's uid, so that twice is the same as once.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/random/random.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/os/clock.h"
#include "server/controller/assignment.h"
#include "server/controller/job_controller.h"
#include "server/controller/work_queue.h"
#include "server/events/event_hub.h"
#include "server/jobs/job_record.h"
#include "server/metrics/metrics.h"
#include "server/scheduler/plan.h"
#include "server/store/job_store.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/worker_reports.h"

namespace traind::controller {

struct ControllerOptions {
  WorkerSettings worker;
  std::string node = "nodes/local";
  std::vector<scheduler::Device> devices;  // `holder` is ignored.
  int max_queued_jobs = 1000;
  absl::Duration cancel_grace = absl::Seconds(10);  // From the stop command to the kill.
  // The same for a job whose time is up, which may save first.
  absl::Duration time_limit_grace = absl::Seconds(60);
  absl::Duration retry_interval = absl::Seconds(1);  // After a commit that failed.
};

// What the controller works with; all of it outlives the controller.
struct ControllerParts {
  store::JobStore& store;
  supervisor::Supervisor& supervisor;
  events::EventHub& events;
  metrics::Metrics& metrics;
  const Clock& clock;
};

// Thread-safe. If the process dies, Start of the next one takes up every job where its last commit
// left it.
class Controller : public JobController, public supervisor::WorkerReports {
 public:
  Controller(ControllerOptions options, const ControllerParts& parts);
  // Stop.
  ~Controller() override;

  // Reads the store, re-attaches to workers, kills strays, and begins to schedule. Errors: as the
  // store's.
  absl::Status Start();

  // Answers what was called before; later calls, the supervisor's too, get UNAVAILABLE (DRAINING)
  // at once. Workers run on.
  void Stop() { queue_.Stop(); }

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request,
                                    const std::string& owner) override;
  absl::StatusOr<v1::Job> CancelJob(const std::string& name, const std::string& etag) override;
  absl::Status DeleteJob(const std::string& name, const std::string& etag) override;
  std::vector<DeviceUse> ListDeviceUse() override;

  absl::StatusOr<int64_t> OnHello(const worker::v1::Hello& hello) override;
  absl::StatusOr<int64_t> OnReports(const std::string& attempt_uid, int64_t fencing_token,
                                    const std::vector<worker::v1::Report>& reports) override;
  void OnWorkerGone(const std::string& attempt_uid, const absl::Status& why) override;

 private:
  // An attempt whose processes are not known to be gone, and which therefore holds its devices.
  struct Holding {
    std::string job_uid;
    std::vector<std::string> devices;
    bool time_is_up = false;
  };

  // Everything below lives on the controller's thread.

  // The public calls.
  absl::StatusOr<store::CreateResult> DoCreate(const v1::CreateJobRequest& request,
                                               const std::string& owner);
  bool QueueIsFull() const;
  absl::StatusOr<store::CreateResult> ReplayOrRefuse(const store::RequestId& id);
  absl::StatusOr<v1::Job> DoCancel(const std::string& name, const std::string& etag);
  absl::Status DoDelete(const std::string& name, const std::string& etag);
  absl::StatusOr<int64_t> DoHello(const worker::v1::Hello& hello);
  absl::StatusOr<int64_t> DoReports(const std::string& attempt_uid, int64_t fencing_token,
                                    const std::vector<worker::v1::Report>& reports);
  std::vector<DeviceUse> DoListDeviceUse();

  // Commits, then keeps memory, watchers, metrics and log in step.
  absl::Status Commit(jobs::JobRecord& record, const jobs::JobUpdate& update,
                      const std::string& operation);
  void Announce(const v1::Job& job, const std::vector<v1::Event>& events);

  // Scheduling.
  void Schedule();
  scheduler::Snapshot TakeSnapshot() const;
  absl::Status ApplyPlan(const scheduler::Plan& plan);
  absl::Status Place(jobs::JobRecord& record, const std::vector<std::string>& devices);
  void Launch(jobs::JobRecord& record);
  absl::Status TryLaunch(jobs::JobRecord& record);
  void WatchTimeLimit(const jobs::JobRecord& record);
  void EndForTimeLimit(const std::string& attempt_uid);

  // The end of an attempt.
  void EndAttempt(const std::string& attempt_uid, const absl::Status& why);
  void ForgetIfOver(const std::string& job_uid);

  // After a restart.
  void Recover(jobs::JobRecord& record);

  jobs::JobRecord* FindActive(const std::string& name);
  jobs::JobRecord* FindByAttempt(const std::string& attempt_uid);
  bool IsHeld(const std::string& job_uid) const;
  std::string NewUuid();
  std::string NewJobId();

  const ControllerOptions options_;
  store::JobStore& store_;
  supervisor::Supervisor& supervisor_;
  events::EventHub& events_;
  metrics::Metrics& metrics_;
  const Clock& clock_;
  absl::BitGen random_;
  std::map<std::string, jobs::JobRecord> active_;  // By uid: not terminal, or still held.
  std::map<std::string, Holding> holdings_;        // By attempt uid.
  WorkQueue queue_;                                // Last: its thread uses the others.
};

}  // namespace traind::controller
