// traind.v1.NodeService.
#pragma once

#include "server/api/host_stats.h"
#include "server/api/service_context.h"
#include "traind/v1/node_service.grpc.pb.h"

namespace traind::api {

// One node: the daemon's host. Thread-safe.
class NodeServiceImpl : public v1::NodeService::Service {
 public:
  explicit NodeServiceImpl(const ServiceContext& context) : context_(context) {}

  grpc::Status ListNodes(grpc::ServerContext* rpc, const v1::ListNodesRequest* request,
                         v1::ListNodesResponse* response) override;

 private:
  v1::Node Describe();

  const ServiceContext context_;
  HostStats host_stats_;
};

}  // namespace traind::api
