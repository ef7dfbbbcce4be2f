#include "server/daemon/daemon.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/os/file.h"
#include "common/os/subprocess.h"
#include "common/status/errors.h"
#include "server/artifacts/job_paths.h"
#include "server/daemon/version.h"
#include "server/store/sqlite_job_store.h"

namespace traind::daemon {
namespace {

constexpr char kNode[] = "nodes/local";
constexpr absl::Duration kApiStopLimit = absl::Seconds(5);
// A worker reads gigabytes before it speaks, on a machine that may be busy.
constexpr absl::Duration kShortestAttachLimit = absl::Seconds(60);

class MetricsRpcObserver : public api::RpcObserver {
 public:
  explicit MetricsRpcObserver(metrics::Metrics& metrics) : metrics_(metrics) {}

  void OnRpcFinished(absl::string_view method, absl::StatusCode code,
                     absl::Duration duration) override {
    metrics_.OnRpcFinished(std::string(method), code, duration);
  }
  void OnStreamsChanged(absl::string_view method, int change) override {
    metrics_.OnStreamsChanged(std::string(method), change);
  }

 private:
  metrics::Metrics& metrics_;
};

std::string HostName() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::string DeviceId(int slot) { return absl::StrCat("cpu", slot); }

std::vector<metrics::DeviceInfo> DescribeDevices(const config::v1::TraindConfig& config) {
  const int64_t memory = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE);
  std::vector<metrics::DeviceInfo> devices;
  for (int slot = 0; slot < config.cpu_slots(); ++slot) {
    devices.push_back({DeviceId(slot), memory, static_cast<double>(config.worker_threads())});
  }
  return devices;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(const config::v1::TraindConfig& config) {
  TRAIND_RETURN_IF_ERROR(BecomeSubreaper());
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  TRAIND_RETURN_IF_ERROR(daemon->TakeStateDir());
  daemon->MakeMetrics();
  TRAIND_RETURN_IF_ERROR(daemon->ServeMetrics());
  daemon->MakeController();
  // Everything that can fail because somebody else is there comes before the first worker starts.
  TRAIND_RETURN_IF_ERROR(daemon->StartApi());
  TRAIND_RETURN_IF_ERROR(daemon->supervisor_->Serve(*daemon->controller_));
  TRAIND_RETURN_IF_ERROR(daemon->controller_->Start());
  Log(LogLevel::kInfo, "daemon.started",
      {{"version", kVersion},
       {"state_dir", config.state_dir()},
       {"pid", absl::StrCat(::getpid())}});
  return daemon;
}

Daemon::Daemon(const config::v1::TraindConfig& config) : config_(config) {}

Daemon::~Daemon() { Stop(); }

absl::Status Daemon::TakeStateDir() {
  TRAIND_RETURN_IF_ERROR(CreateDirectories(config_.state_dir()));
  TRAIND_ASSIGN_OR_RETURN(store::StateDirLock lock,
                          store::StateDirLock::Acquire(config_.state_dir()));
  lock_.emplace(std::move(lock));
  TRAIND_RETURN_IF_ERROR(artifacts::RemoveLeftovers(config_.state_dir()));
  store::SqliteJobStoreOptions options;
  options.path = absl::StrCat(config_.state_dir(), "/traind.db");
  TRAIND_ASSIGN_OR_RETURN(store_, store::SqliteJobStore::Open(options));
  return absl::OkStatus();
}

void Daemon::MakeMetrics() {
  metrics::MetricsOptions options;
  options.version = kVersion;
  options.host = HostName();
  options.devices = DescribeDevices(config_);
  metrics_ = std::make_unique<metrics::Metrics>(std::move(options), clock_);
  rpc_observer_ = std::make_unique<MetricsRpcObserver>(*metrics_);
}

absl::Status Daemon::ServeMetrics() {
  if (config_.metrics_address().empty()) return absl::OkStatus();
  TRAIND_ASSIGN_OR_RETURN(const config::HostPort address,
                          config::ParseHostPort(config_.metrics_address()));
  TRAIND_ASSIGN_OR_RETURN(metrics_server_,
                          metrics::MetricsServer::Start(address.host, address.port, *metrics_));
  return absl::OkStatus();
}

void Daemon::MakeController() {
  launcher_ = std::make_unique<launcher::LocalLauncher>(
      launcher::LocalLauncherOptions{config_.worker_binary(), config_.state_dir()});
  supervisor::LeaseSupervisorOptions leases;
  leases.socket_path = absl::StrCat(config_.state_dir(), "/worker.sock");
  leases.lease = config::ToDuration(config_.worker_lease());
  leases.attach_limit = std::max(leases.lease, kShortestAttachLimit);
  supervisor_ = std::make_unique<supervisor::LeaseSupervisor>(leases, *launcher_, clock_);
  metrics_->SetHeartbeatSource([this] {
    metrics::Metrics::HeartbeatAges ages;
    for (const supervisor::WorkerStatus& worker : supervisor_->ListWorkers()) {
      ages.emplace_back(worker.attempt_uid, worker.heartbeat_age);
    }
    return ages;
  });
  controller::ControllerOptions options;
  options.worker = {config_.state_dir(), supervisor_->target(), config_.worker_threads(),
                    config::ToDuration(config_.worker_heartbeat())};
  options.node = kNode;
  for (int slot = 0; slot < config_.cpu_slots(); ++slot) {
    options.devices.push_back({DeviceId(slot), "cpu", ""});
  }
  options.max_queued_jobs = config_.max_queued_jobs();
  options.cancel_grace = config::ToDuration(config_.cancel_grace());
  const controller::ControllerParts parts{*store_, *supervisor_, events_, *metrics_, clock_};
  controller_ = std::make_unique<controller::Controller>(std::move(options), parts);
}

absl::Status Daemon::StartApi() {
  api::ApiOptions options;
  options.config = config_;
  options.node_name = kNode;
  options.version = kVersion;
  api::ApiDependencies dependencies;
  dependencies.controller = controller_.get();
  dependencies.store = store_.get();
  dependencies.events = &events_;
  dependencies.observer = rpc_observer_.get();
  dependencies.clock = &clock_;
  TRAIND_ASSIGN_OR_RETURN(api_, api::ApiServer::Start(std::move(options), dependencies));
  return absl::OkStatus();
}

void Daemon::Stop() {
  events_.Stop();
  // First the controller: calls that have begun are answered, later ones get DRAINING at once
  // instead of holding the API's and the supervisor's threads.
  if (controller_ != nullptr) controller_->Stop();
  if (api_ != nullptr) api_->Stop(kApiStopLimit);
  if (supervisor_ != nullptr) supervisor_->Stop();
  if (metrics_ != nullptr) metrics_->SetHeartbeatSource(nullptr);
}

}  // namespace traind::daemon
