// The public API: listeners, who is calling, and the services of traind.v1.
//
// Threads. gRPC's synchronous server gives each running call a thread of its own and makes more
// when all are busy, so that a watcher, which holds its thread in a wait on the EventHub, never
// keeps a unary call from starting. `max_streams` bounds the watchers and followers; one more is
// refused with RESOURCE_EXHAUSTED.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/os/clock.h"
#include "server/api/rpc_observer.h"
#include "server/config/config.h"
#include "server/controller/job_controller.h"
#include "server/events/event_hub.h"
#include "server/store/job_store.h"

namespace traind::api {

// What the services call; everything outlives the ApiServer.
struct ApiDependencies {
  controller::JobController* controller = nullptr;
  store::JobStore* store = nullptr;
  events::EventHub* events = nullptr;
  RpcObserver* observer = nullptr;  // May be null.
  const Clock* clock = nullptr;
};

struct ApiOptions {
  config::v1::TraindConfig config;                       // Resolved.
  std::string node_name = "nodes/local";                 // Of this host, as in placements.
  std::string version;                                   // Such as `0.1.0`.
  absl::Duration heartbeat_interval = absl::Seconds(5);  // Of WatchJob and ReadLogs.
  int max_streams = 512;  // WatchJob, ReadLogs and DownloadCheckpoint together.
};

// Owns its listeners and threads. Thread-compatible. If the process dies, the socket file stays;
// the next start removes it after finding that nobody listens on it.
class ApiServer {
 public:
  // Listens on every address of the configuration. Errors: FAILED_PRECONDITION (ADDRESS_IN_USE),
  // INVALID_ARGUMENT (CONFIG_INVALID) for an unusable certificate, key, token file or folder.
  static absl::StatusOr<std::unique_ptr<ApiServer>> Start(ApiOptions options,
                                                          const ApiDependencies& dependencies);
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  // Addresses as clients write them: `unix:/run/traind/traind.sock`, `127.0.0.1:7443`. Ports that
  // the system chose are filled in.
  const std::vector<std::string>& addresses() const;

  // Takes no new calls, ends streams with SERVER_STOPPING, gives running calls until `deadline`,
  // cancels the rest and removes the socket file. Call EventHub::Stop before it. May be called
  // twice.
  void Stop(absl::Duration deadline);

 private:
  class Parts;
  explicit ApiServer(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace traind::api
