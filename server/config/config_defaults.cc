#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/config/config_internal.h"

namespace traind::config {
namespace {

constexpr char kDefaultStateDir[] = "/var/lib/traind";

google::protobuf::Duration FromDuration(absl::Duration duration) {
  google::protobuf::Duration result;
  result.set_seconds(absl::ToInt64Seconds(duration));
  result.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(duration - absl::Seconds(result.seconds()))));
  return result;
}

void FillPaths(const HostDefaults& host, v1::TraindConfig& config) {
  if (config.listen_unix().empty()) {
    config.set_listen_unix(config.state_dir().empty()
                               ? "/run/traind/traind.sock"
                               : absl::StrCat(config.state_dir(), "/traind.sock"));
  }
  if (config.state_dir().empty()) config.set_state_dir(kDefaultStateDir);
  if (config.allowed_roots().empty()) {
    if (!host.home_dir.empty() && host.home_dir != "/") config.add_allowed_roots(host.home_dir);
    config.add_allowed_roots("/srv");
    config.add_allowed_roots(config.state_dir());
  }
  if (config.worker_binary().empty()) {
    config.set_worker_binary(absl::StrCat(host.executable_dir, "/traind-worker"));
  }
}

void FillDurations(v1::TraindConfig& config) {
  if (!config.has_worker_lease()) *config.mutable_worker_lease() = FromDuration(absl::Seconds(30));
  if (!config.has_worker_heartbeat()) {
    const absl::Duration sixth = ToDuration(config.worker_lease()) / 6;
    *config.mutable_worker_heartbeat() = FromDuration(std::min(absl::Seconds(5), sixth));
  }
  if (!config.has_cancel_grace()) *config.mutable_cancel_grace() = FromDuration(absl::Seconds(10));
}

}  // namespace

void FillDefaults(const HostDefaults& host, v1::TraindConfig& config) {
  FillPaths(host, config);
  FillDurations(config);
  if (config.unix_socket_mode().empty()) config.set_unix_socket_mode("0660");
  if (!config.has_metrics_address()) config.set_metrics_address("127.0.0.1:9464");
  if (!config.has_cpu_slots()) config.set_cpu_slots(1);
  if (!config.has_worker_threads()) {
    config.set_worker_threads(std::max(1, host.cores / std::max(1, config.cpu_slots())));
  }
  if (!config.has_max_queued_jobs()) config.set_max_queued_jobs(1000);
  if (config.log_level().empty()) config.set_log_level("info");
}

}  // namespace traind::config
