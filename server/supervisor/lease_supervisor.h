// Workers on this machine, held by pidfd and by a lease that their messages renew.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/os/clock.h"
#include "common/os/subprocess.h"
#include "server/launcher/launcher.h"
#include "server/supervisor/lease.h"
#include "server/supervisor/supervisor.h"
#include "server/supervisor/worker_connection.h"
#include "server/supervisor/worker_reports.h"

namespace traind::supervisor {

struct LeaseSupervisorOptions {
  std::string socket_path;                          // Workers dial this Unix socket.
  absl::Duration lease = absl::Seconds(30);         // Longest silence.
  absl::Duration attach_limit = absl::Seconds(60);  // From the start, or ours, to the first word.
  absl::Duration kill_grace = absl::Seconds(5);     // From SIGTERM to SIGKILL.
  absl::Duration drain_limit = absl::Seconds(5);    // For what a dead worker still had in the line.
};

// Thread-safe. Runs a gRPC server, one thread that watches, and one for each worker that is ending.
//
// A broken connection changes nothing. A worker is given up only if its process ends, its lease
// runs out, or it stays after a stop command; then all its processes are killed, and
// OnWorkerGone is called once none is left.
class LeaseSupervisor : public Supervisor {
 public:
  // `launcher` and `clock` are borrowed and outlive the supervisor.
  LeaseSupervisor(LeaseSupervisorOptions options, launcher::Launcher& launcher, const Clock& clock);
  // Stop, if that was not called.
  ~LeaseSupervisor() override;

  // Opens the socket and begins to report. Workers may be started and re-attached before. `reports`
  // is borrowed and outlives the supervisor. Errors: INVALID_ARGUMENT (CONFIG_INVALID) if the
  // socket's path is too long, FAILED_PRECONDITION (ADDRESS_IN_USE).
  absl::Status Serve(WorkerReports& reports);

  // Closes all connections and waits until nothing is reported any more. Leaves the workers
  // running.
  void Stop();

  // gRPC target of the socket.
  std::string target() const { return "unix:" + options_.socket_path; }

  absl::StatusOr<ProcessIdentity> StartWorker(
      const worker::v1::WorkerAssignment& assignment) override;
  bool ReattachWorker(const EarlierWorker& worker) override;
  void KillStrays(const std::set<std::string>& known) override;
  void StopWorker(const std::string& attempt_uid, bool checkpoint, absl::Duration grace) override;
  std::vector<WorkerStatus> ListWorkers() override;

 private:
  class Service;

  struct Worker {
    std::string attempt_dir;
    std::optional<Subprocess> process;  // Empty: was gone when it was re-attached.
    Lease lease;
    std::optional<worker::v1::Stop> stop;           // Sent to each new connection.
    absl::Time kill_time = absl::InfiniteFuture();  // SteadyNow's.
    absl::Duration stop_grace;
    WorkerConnection* connection = nullptr;  // Lives on its handler's stack.
    bool ending = false;
  };
  using Workers = std::map<std::string, Worker>;

  void Add(const std::string& attempt_uid, const std::string& attempt_dir,
           std::optional<Subprocess> process);

  // The gRPC handler's steps.
  grpc::Status Attach(grpc::ServerContext& context, WorkerStream& stream);
  absl::Status Connect(WorkerConnection& connection);
  void Disconnect(WorkerConnection& connection);
  void RenewLease(const std::string& attempt_uid);

  // The watching thread's.
  void Watch();
  void WaitForChange();
  void Wake();
  void CheckWorkers();
  // Why the worker must end now; OK if it need not.
  absl::Status Verdict(const std::string& attempt_uid, Worker& worker, absl::Time now);
  absl::Status DescribeEnd(const std::string& attempt_uid, const Worker& worker,
                           const ExitState& state);

  // The ending threads'.
  void End(const std::string& attempt_uid, const absl::Status& why);
  void JoinFinished();
  bool KillAll(const std::string& attempt_uid);
  void WaitForConnectionEnd(const std::string& attempt_uid);

  const LeaseSupervisorOptions options_;
  launcher::Launcher& launcher_;
  const Clock& clock_;
  const int wake_descriptor_;
  WorkerReports* reports_ = nullptr;  // Set before the threads that use it start.
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::thread watcher_;

  absl::Mutex mutex_;
  Workers workers_ ABSL_GUARDED_BY(mutex_);
  // One thread for each worker that is ending, by attempt; moved to `finished_` by itself.
  std::map<std::string, std::thread> ending_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> finished_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace traind::supervisor
