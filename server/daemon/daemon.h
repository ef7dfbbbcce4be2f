// The whole daemon: builds its parts in order and stops them in reverse.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/clock.h"
#include "server/api/api_server.h"
#include "server/api/rpc_observer.h"
#include "server/config/config.h"
#include "server/controller/controller.h"
#include "server/events/event_hub.h"
#include "server/launcher/local_launcher.h"
#include "server/metrics/metrics.h"
#include "server/metrics/metrics_server.h"
#include "server/store/job_store.h"
#include "server/store/state_dir_lock.h"
#include "server/supervisor/lease_supervisor.h"

namespace traind::daemon {

// Thread-compatible. If the process dies, the workers go on, and the next daemon on the same state
// folder takes them up.
class Daemon {
 public:
  // `config` is resolved. Returns once everything listens and the jobs of an earlier daemon are
  // taken up. Errors: STATE_DIR_LOCKED, ADDRESS_IN_USE, CONFIG_INVALID, STORE_INVALID, DISK_FULL.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(const config::v1::TraindConfig& config);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Takes no new calls, ends streams with SERVER_STOPPING, lets running commits finish, and leaves
  // the workers running. May be called twice.
  void Stop();

  // Where clients connect.
  const std::vector<std::string>& addresses() const { return api_->addresses(); }
  // 0: metrics are switched off.
  int metrics_port() const { return metrics_server_ == nullptr ? 0 : metrics_server_->port(); }

 private:
  explicit Daemon(const config::v1::TraindConfig& config);

  absl::Status TakeStateDir();
  void MakeMetrics();
  absl::Status ServeMetrics();
  void MakeController();
  absl::Status StartApi();

  const config::v1::TraindConfig config_;
  const SystemClock clock_;
  events::EventHub events_;
  // In the order in which they are built.
  std::optional<store::StateDirLock> lock_;
  std::unique_ptr<store::JobStore> store_;
  std::unique_ptr<metrics::Metrics> metrics_;
  std::unique_ptr<api::RpcObserver> rpc_observer_;
  std::unique_ptr<metrics::MetricsServer> metrics_server_;
  std::unique_ptr<launcher::LocalLauncher> launcher_;
  std::unique_ptr<supervisor::LeaseSupervisor> supervisor_;
  std::unique_ptr<controller::Controller> controller_;
  std::unique_ptr<api::ApiServer> api_;
};

}  // namespace traind::daemon
