#include "server/api/server_service_impl.h"

#include "server/api/environment_checks.h"

namespace traind::api {

grpc::Status ServerServiceImpl::GetServerInfo(grpc::ServerContext* rpc,
                                              const v1::GetServerInfoRequest*,
                                              v1::ServerInfo* response) {
  return context_.runner->Unary(*rpc, {"GetServerInfo", ""}, [&](const std::string& caller) {
    const config::v1::TraindConfig& config = context_.options->config;
    response->set_version(context_.options->version);
    response->mutable_start_time()->set_seconds(absl::ToUnixSeconds(start_time_));
    response->set_state_dir(config.state_dir());
    response->mutable_addresses()->Add(addresses_->begin(), addresses_->end());
    *response->mutable_allowed_roots() = config.allowed_roots();
    response->set_metrics_address(config.metrics_address());
    response->set_caller(caller);
    return absl::OkStatus();
  });
}

grpc::Status ServerServiceImpl::CheckEnvironment(grpc::ServerContext* rpc,
                                                 const v1::CheckEnvironmentRequest*,
                                                 v1::CheckEnvironmentResponse* response) {
  return context_.runner->Unary(*rpc, {"CheckEnvironment", ""}, [&](const std::string&) {
    const auto checks = api::CheckEnvironment(context_.options->config,
                                              context_.parts.controller->ListDeviceUse().size());
    response->mutable_checks()->Add(checks.begin(), checks.end());
    return absl::OkStatus();
  });
}

}  // namespace traind::api
