// Serves /metrics over HTTP.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "server/metrics/metrics.h"

namespace traind::metrics {

// A minimal HTTP/1.1 server with one thread: GET /metrics, one request per connection, anything
// else is refused. Thread-compatible.
class MetricsServer {
 public:
  // Listens on `host`:`port`; port 0 lets the system choose. `metrics` is borrowed and outlives the
  // server. Errors: FAILED_PRECONDITION (ADDRESS_IN_USE), INVALID_ARGUMENT (CONFIG_INVALID).
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(const std::string& host, int port,
                                                              Metrics& metrics);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  int port() const { return port_; }

 private:
  MetricsServer(int listener, int wake, int port, Metrics& metrics);

  void Serve();
  void Answer(int connection);

  const int listener_;
  const int wake_;
  const int port_;
  Metrics& metrics_;
  std::thread thread_;
};

}  // namespace traind::metrics
