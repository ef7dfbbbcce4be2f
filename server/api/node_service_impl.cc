#include "server/api/node_service_impl.h"

#include <unistd.h>

#include <array>
#include <string>

#include "absl/strings/match.h"
#include "common/status/errors.h"
#include "server/api/paging.h"

namespace traind::api {
namespace {

std::string HostName() {
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

// Processor devices share the machine; what a CUDA device does is not known to the daemon.
v1::Device Describe(const controller::JobController::DeviceUse& device, const HostUse& host) {
  v1::Device result;
  result.set_id(device.device_id);
  result.set_job(device.job_name);
  if (!absl::StartsWith(device.device_id, "cpu")) {
    result.set_type("cuda");
    return result;
  }
  result.set_type("cpu");
  result.set_model(host.processor);
  result.set_memory_total_bytes(host.memory_total_bytes);
  result.set_memory_used_bytes(host.memory_used_bytes);
  result.set_utilization_ratio(host.cpu_utilization);
  return result;
}

}  // namespace

grpc::Status NodeServiceImpl::ListNodes(grpc::ServerContext* rpc,
                                        const v1::ListNodesRequest* request,
                                        v1::ListNodesResponse* response) {
  return context_.runner->Unary(*rpc, {"ListNodes", ""}, [&](const std::string&) -> absl::Status {
    TRAIND_RETURN_IF_ERROR(ResolvePageSize(request->page_size()).status());
    // There is one page, so no token was ever given out.
    if (!request->page_token().empty()) return BadPageToken();
    *response->add_nodes() = Describe();
    return absl::OkStatus();
  });
}

v1::Node NodeServiceImpl::Describe() {
  const HostUse host = host_stats_.Read();
  v1::Node node;
  node.set_name(context_.options->node_name);
  node.set_hostname(HostName());
  node.set_memory_total_bytes(host.memory_total_bytes);
  node.set_cpu_cores(host.cores);
  for (const auto& device : context_.parts.controller->ListDeviceUse()) {
    *node.add_devices() = api::Describe(device, host);
  }
  return node;
}

}  // namespace traind::api
