// traind.v1.ServerService.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/api/service_context.h"
#include "traind/v1/server_service.grpc.pb.h"

namespace traind::api {

// Stateless. Thread-safe.
class ServerServiceImpl : public v1::ServerService::Service {
 public:
  // `addresses` is complete before the first call and outlives the service.
  ServerServiceImpl(const ServiceContext& context, const std::vector<std::string>* addresses)
      : context_(context), addresses_(addresses), start_time_(context.parts.clock->Now()) {}

  grpc::Status GetServerInfo(grpc::ServerContext* rpc, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override;
  grpc::Status CheckEnvironment(grpc::ServerContext* rpc,
                                const v1::CheckEnvironmentRequest* request,
                                v1::CheckEnvironmentResponse* response) override;

 private:
  const ServiceContext context_;
  const std::vector<std::string>* const addresses_;
  const absl::Time start_time_;
};

}  // namespace traind::api
