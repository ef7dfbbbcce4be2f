// traind.v1.CheckpointService.
#pragma once

#include "server/api/service_context.h"
#include "server/artifacts/checkpoint_catalog.h"
#include "traind/v1/checkpoint.grpc.pb.h"

namespace traind::api {

// Stateless. Thread-safe.
class CheckpointServiceImpl : public v1::CheckpointService::Service {
 public:
  explicit CheckpointServiceImpl(const ServiceContext& context)
      : context_(context), catalog_(context.options->config.state_dir()) {}

  grpc::Status ListCheckpoints(grpc::ServerContext* rpc, const v1::ListCheckpointsRequest* request,
                               v1::ListCheckpointsResponse* response) override;
  grpc::Status GetCheckpoint(grpc::ServerContext* rpc, const v1::GetCheckpointRequest* request,
                             v1::Checkpoint* response) override;
  grpc::Status DownloadCheckpoint(grpc::ServerContext* rpc,
                                  const v1::DownloadCheckpointRequest* request,
                                  grpc::ServerWriter<v1::CheckpointChunk>* writer) override;

 private:
  absl::Status List(const v1::ListCheckpointsRequest& request,
                    v1::ListCheckpointsResponse* response) const;
  absl::StatusOr<v1::Checkpoint> Find(const std::string& name) const;

  const ServiceContext context_;
  const artifacts::CheckpointCatalog catalog_;
};

}  // namespace traind::api
