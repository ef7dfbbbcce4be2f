// traind.v1.JobService.
#pragma once

#include <string>

#include "server/api/service_context.h"
#include "traind/v1/job_service.grpc.pb.h"

namespace traind::api {

// Stateless: checks the request and passes it on. Thread-safe.
class JobServiceImpl : public v1::JobService::Service {
 public:
  explicit JobServiceImpl(const ServiceContext& context) : context_(context) {}

  grpc::Status CreateJob(grpc::ServerContext* rpc, const v1::CreateJobRequest* request,
                         v1::Job* response) override;
  grpc::Status GetJob(grpc::ServerContext* rpc, const v1::GetJobRequest* request,
                      v1::Job* response) override;
  grpc::Status ListJobs(grpc::ServerContext* rpc, const v1::ListJobsRequest* request,
                        v1::ListJobsResponse* response) override;
  grpc::Status CancelJob(grpc::ServerContext* rpc, const v1::CancelJobRequest* request,
                         v1::Job* response) override;
  grpc::Status DeleteJob(grpc::ServerContext* rpc, const v1::DeleteJobRequest* request,
                         google::protobuf::Empty* response) override;
  grpc::Status WatchJob(grpc::ServerContext* rpc, const v1::WatchJobRequest* request,
                        grpc::ServerWriter<v1::Event>* writer) override;
  grpc::Status ReadLogs(grpc::ServerContext* rpc, const v1::ReadLogsRequest* request,
                        grpc::ServerWriter<v1::LogChunk>* writer) override;

 private:
  absl::Status Create(const v1::CreateJobRequest& request, const std::string& caller,
                      v1::Job* response);
  absl::Status List(const v1::ListJobsRequest& request, v1::ListJobsResponse* response);

  const ServiceContext context_;
};

}  // namespace traind::api
