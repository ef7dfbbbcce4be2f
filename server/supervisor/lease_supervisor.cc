#include "server/supervisor/lease_supervisor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log/log.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"

namespace traind::supervisor {
namespace {

// Leases are looked at as often as this; everything else wakes the watcher by itself.
constexpr int kWatchMilliseconds = 250;

absl::Status WorkerLost(absl::string_view attempt_uid, absl::string_view what) {
  return Error(absl::StatusCode::kAborted, Reason::kWorkerLost, what, {{"attempt", attempt_uid}});
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  proto.set_seconds(absl::ToInt64Seconds(duration));
  proto.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(proto.seconds()))));
  return proto;
}

// Fits into sockaddr_un with its closing zero?
absl::Status CheckSocketPath(const std::string& path) {
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() <= kLongest) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid,
               absl::StrCat("the worker socket's path ", path, " has ", path.size(),
                            " bytes, but a Unix socket's may have at most ", kLongest,
                            "; choose a shorter state folder"),
               {{"path", path}});
}

}  // namespace

class LeaseSupervisor::Service : public worker::v1::WorkerService::Service {
 public:
  explicit Service(LeaseSupervisor& supervisor) : supervisor_(supervisor) {}

  grpc::Status Attach(grpc::ServerContext* context, WorkerStream* stream) override {
    return supervisor_.Attach(*context, *stream);
  }

 private:
  LeaseSupervisor& supervisor_;
};

LeaseSupervisor::LeaseSupervisor(LeaseSupervisorOptions options, launcher::Launcher& launcher,
                                 const Clock& clock)
    : options_(std::move(options)),
      launcher_(launcher),
      clock_(clock),
      wake_descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

LeaseSupervisor::~LeaseSupervisor() {
  Stop();
  ::close(wake_descriptor_);
}

absl::Status LeaseSupervisor::Serve(WorkerReports& reports) {
  TRAIND_RETURN_IF_ERROR(CheckSocketPath(options_.socket_path));
  reports_ = &reports;
  service_ = std::make_unique<Service>(*this);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(target(), grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return Error(absl::StatusCode::kFailedPrecondition, Reason::kAddressInUse,
                 absl::StrCat("cannot listen on the worker socket ", options_.socket_path),
                 {{"address", options_.socket_path}});
  }
  // Connecting takes write permission, which the usual umask denies to others; this does it always.
  if (::chmod(options_.socket_path.c_str(), 0600) != 0) {
    return ErrnoError(errno, Reason::kConfigInvalid, "protect", options_.socket_path);
  }
  watcher_ = std::thread([this] { Watch(); });
  return absl::OkStatus();
}

void LeaseSupervisor::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  Wake();
  if (watcher_.joinable()) watcher_.join();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  {
    absl::MutexLock lock(&mutex_);
    const auto all_finished = [this]()
                                  ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ending_.empty(); };
    mutex_.Await(absl::Condition(&all_finished));
  }
  JoinFinished();
  server_.reset();
}

absl::StatusOr<ProcessIdentity> LeaseSupervisor::StartWorker(
    const worker::v1::WorkerAssignment& assignment) {
  TRAIND_ASSIGN_OR_RETURN(Subprocess process, launcher_.Launch(assignment));
  const ProcessIdentity identity = process.identity();
  Add(assignment.attempt_uid(), assignment.attempt_dir(), std::move(process));
  return identity;
}

bool LeaseSupervisor::ReattachWorker(const EarlierWorker& worker) {
  absl::StatusOr<Subprocess> process = launcher_.Find(worker.attempt_uid, worker.identity);
  if (!process.ok() && worker.identity.pid == 0) return false;
  std::optional<Subprocess> held;
  if (process.ok()) held.emplace(*std::move(process));
  Add(worker.attempt_uid, worker.attempt_dir, std::move(held));
  return true;
}

void LeaseSupervisor::KillStrays(const std::set<std::string>& known) {
  for (const std::string& attempt_uid : launcher_.FindAttempts()) {
    if (known.count(attempt_uid) > 0) continue;
    const absl::Status killed = launcher_.KillAttempt(attempt_uid, options_.kill_grace);
    Log(LogLevel::kWarn, "worker.stray_killed",
        {{"attempt", attempt_uid}, {"error", std::string(killed.message())}});
  }
}

void LeaseSupervisor::Add(const std::string& attempt_uid, const std::string& attempt_dir,
                          std::optional<Subprocess> process) {
  const Lease lease(clock_.SteadyNow(), options_.attach_limit, options_.lease);
  {
    absl::MutexLock lock(&mutex_);
    workers_.emplace(attempt_uid, Worker{.attempt_dir = attempt_dir,
                                         .process = std::move(process),
                                         .lease = lease,
                                         .stop = {},
                                         .stop_grace = {}});
  }
  Wake();
}

void LeaseSupervisor::StopWorker(const std::string& attempt_uid, bool checkpoint,
                                 absl::Duration grace) {
  const absl::Time kill_time = clock_.SteadyNow() + grace;
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(attempt_uid);
  if (found == workers_.end()) return;
  Worker& worker = found->second;
  worker.stop.emplace().set_checkpoint(checkpoint);
  if (kill_time < worker.kill_time) {
    worker.kill_time = kill_time;
    worker.stop_grace = grace;
  }
  if (worker.connection != nullptr) worker.connection->SendStop(*worker.stop);
  Wake();
}

std::vector<WorkerStatus> LeaseSupervisor::ListWorkers() {
  const absl::Time now = clock_.SteadyNow();
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerStatus> list;
  for (const auto& [attempt_uid, worker] : workers_) {
    list.push_back({attempt_uid, worker.connection != nullptr, worker.lease.Age(now)});
  }
  return list;
}

grpc::Status LeaseSupervisor::Attach(grpc::ServerContext& context, WorkerStream& stream) {
  worker::v1::WorkerRequest first;
  if (!stream.Read(&first)) return grpc::Status::CANCELLED;
  if (!first.has_hello()) {
    return ToGrpcStatus(Error(absl::StatusCode::kInvalidArgument, Reason::kInvalidField,
                              "the first message of Attach must be `hello`"));
  }
  WorkerConnection connection(context, stream, first.hello(), *reports_);
  const absl::StatusOr<int64_t> acknowledged = reports_->OnHello(connection.hello());
  if (!acknowledged.ok()) return ToGrpcStatus(acknowledged.status());
  const absl::Status connected = Connect(connection);
  if (!connected.ok()) return ToGrpcStatus(connected);
  worker::v1::Welcome welcome;
  welcome.set_acknowledged(*acknowledged);
  *welcome.mutable_lease() = ToProto(options_.lease);
  connection.Run(welcome, [&] { RenewLease(connection.hello().attempt_uid()); });
  Disconnect(connection);
  return grpc::Status::OK;
}

absl::Status LeaseSupervisor::Connect(WorkerConnection& connection) {
  const std::string& attempt_uid = connection.hello().attempt_uid();
  const absl::Time now = clock_.SteadyNow();
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(attempt_uid);
  if (found == workers_.end() || found->second.ending) {
    return Error(absl::StatusCode::kFailedPrecondition, Reason::kAttemptFenced,
                 absl::StrCat("attempt ", attempt_uid, " is over"), {{"attempt", attempt_uid}});
  }
  Worker& worker = found->second;
  // The line that the worker left behind may not have noticed yet.
  if (worker.connection != nullptr) worker.connection->Cancel();
  worker.connection = &connection;
  worker.lease.Renew(now);
  if (worker.stop) connection.SendStop(*worker.stop);
  return absl::OkStatus();
}

void LeaseSupervisor::Disconnect(WorkerConnection& connection) {
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(connection.hello().attempt_uid());
  if (found == workers_.end() || found->second.connection != &connection) return;
  found->second.connection = nullptr;
}

void LeaseSupervisor::RenewLease(const std::string& attempt_uid) {
  const absl::Time now = clock_.SteadyNow();
  absl::MutexLock lock(&mutex_);
  const auto found = workers_.find(attempt_uid);
  if (found != workers_.end()) found->second.lease.Renew(now);
}

void LeaseSupervisor::Watch() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
    }
    CheckWorkers();
    JoinFinished();
    launcher_.ReapOrphans();
    WaitForChange();
  }
}

void LeaseSupervisor::WaitForChange() {
  std::vector<pollfd> entries = {{wake_descriptor_, POLLIN, 0}};
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [attempt_uid, worker] : workers_) {
      if (worker.ending || !worker.process) continue;
      entries.push_back({worker.process->poll_descriptor(), POLLIN, 0});
    }
  }
  ::poll(entries.data(), entries.size(), kWatchMilliseconds);
  uint64_t count = 0;
  while (::read(wake_descriptor_, &count, sizeof count) > 0) {
  }
}

void LeaseSupervisor::Wake() {
  const uint64_t one = 1;
  // It can only fail because the counter is full, and then the watcher is awake anyway.
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

void LeaseSupervisor::CheckWorkers() {
  const absl::Time now = clock_.SteadyNow();
  absl::MutexLock lock(&mutex_);
  for (auto& [attempt_uid, worker] : workers_) {
    if (worker.ending) continue;
    const absl::Status verdict = Verdict(attempt_uid, worker, now);
    if (verdict.ok()) continue;
    worker.ending = true;
    ending_[attempt_uid] = std::thread([this, uid = attempt_uid, verdict] {
      End(uid, verdict);
      absl::MutexLock finish_lock(&mutex_);
      finished_.push_back(std::move(ending_.extract(uid).mapped()));
    });
  }
}

absl::Status LeaseSupervisor::Verdict(const std::string& attempt_uid, Worker& worker,
                                      absl::Time now) {
  if (!worker.process) {
    return WorkerLost(attempt_uid, "the worker ended while the daemon was away");
  }
  const std::optional<ExitState> state = worker.process->Wait(absl::ZeroDuration());
  if (state) return DescribeEnd(attempt_uid, worker, *state);
  if (now >= worker.kill_time) {
    return WorkerLost(attempt_uid, absl::StrCat("the worker did not leave within ",
                                                absl::FormatDuration(worker.stop_grace),
                                                " after it was told to, and was killed"));
  }
  if (worker.lease.Expired(now)) {
    return WorkerLost(attempt_uid,
                      absl::StrCat("the worker (process ", worker.process->identity().pid,
                                   ") gave no sign of life for ",
                                   absl::FormatDuration(worker.lease.Age(now)), " and was killed"));
  }
  return absl::OkStatus();
}

absl::Status LeaseSupervisor::DescribeEnd(const std::string& attempt_uid, const Worker& worker,
                                          const ExitState& state) {
  std::string message = absl::StrCat("the worker (process ", worker.process->identity().pid, ") ",
                                     DescribeExit(state));
  const std::string last_lines = launcher_.LastLogLines(worker.attempt_dir);
  if (!last_lines.empty()) absl::StrAppend(&message, "; its last lines:\n", last_lines);
  return WorkerLost(attempt_uid, message);
}

void LeaseSupervisor::End(const std::string& attempt_uid, const absl::Status& why) {
  Log(LogLevel::kInfo, "worker.ended",
      {{"attempt", attempt_uid}, {"error", std::string(why.message())}});
  if (!KillAll(attempt_uid)) return;
  WaitForConnectionEnd(attempt_uid);
  {
    absl::MutexLock lock(&mutex_);
    workers_.erase(attempt_uid);
    // The daemon that comes next will find it gone.
    if (stopping_) return;
  }
  reports_->OnWorkerGone(attempt_uid, why);
}

void LeaseSupervisor::JoinFinished() {
  std::vector<std::thread> finished;
  {
    absl::MutexLock lock(&mutex_);
    finished.swap(finished_);
  }
  for (std::thread& thread : finished) thread.join();
}

bool LeaseSupervisor::KillAll(const std::string& attempt_uid) {
  while (true) {
    const absl::Status killed = launcher_.KillAttempt(attempt_uid, options_.kill_grace);
    if (killed.ok()) return true;
    Log(LogLevel::kError, "worker.kill_failed",
        {{"attempt", attempt_uid}, {"error", std::string(killed.message())}});
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), absl::Seconds(1))) return false;
  }
}

void LeaseSupervisor::WaitForConnectionEnd(const std::string& attempt_uid) {
  absl::MutexLock lock(&mutex_);
  Worker& worker = workers_.at(attempt_uid);
  const auto ended = [&worker]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return worker.connection == nullptr;
  };
  if (mutex_.AwaitWithTimeout(absl::Condition(&ended), options_.drain_limit)) return;
  worker.connection->Cancel();
  mutex_.Await(absl::Condition(&ended));
}

}  // namespace traind::supervisor
