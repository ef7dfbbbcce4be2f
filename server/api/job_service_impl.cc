#include "server/api/job_service_impl.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/jobspec/job_defaults.h"
#include "common/jobspec/job_validation.h"
#include "common/names/resource_name.h"
#include "common/status/errors.h"
#include "server/api/job_watch.h"
#include "server/api/log_stream.h"
#include "server/api/paging.h"

namespace traind::api {
namespace {

constexpr int kMaxLabelFilters = 64;

// Only what a user may set.
v1::Job WithoutOutputFields(const v1::Job& sent) {
  v1::Job job;
  *job.mutable_spec() = sent.spec();
  *job.mutable_resources() = sent.resources();
  *job.mutable_labels() = sent.labels();
  job.set_priority(sent.priority());
  job.set_display_name(sent.display_name());
  return job;
}

// What `auto` means here.
std::string DeviceType(const std::vector<controller::JobController::DeviceUse>& devices) {
  const bool has_cuda = std::any_of(devices.begin(), devices.end(), [](const auto& device) {
    return absl::StartsWith(device.device_id, "cuda");
  });
  return has_cuda ? "cuda" : "cpu";
}

// Whether this node could ever hold the job.
absl::Status CheckDevices(const v1::Resources& wanted,
                          const std::vector<controller::JobController::DeviceUse>& devices) {
  const auto count = std::count_if(devices.begin(), devices.end(), [&](const auto& device) {
    return absl::StartsWith(device.device_id, wanted.device_type());
  });
  if (wanted.devices() <= count) return absl::OkStatus();
  const std::string asked = absl::StrCat(wanted.devices());
  const std::string there = absl::StrCat(count);
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kDeviceCountImpossible,
               absl::StrCat("the job asks for ", asked, " ", wanted.device_type(),
                            " devices and the node has ", there,
                            "; lower job.resources.devices or choose another device_type"),
               {{"devices", asked}, {"available", there}, {"device_type", wanted.device_type()}});
}

absl::Status CheckStates(const v1::ListJobsRequest& request) {
  for (int i = 0; i < request.states_size(); ++i) {
    const int state = request.states(i);
    if (state != v1::Job::STATE_UNSPECIFIED && v1::Job::State_IsValid(state)) continue;
    return FieldErrors({{absl::StrCat("states[", i, "]"),
                         absl::StrCat(state, " is no state that a job can be in")}});
  }
  return absl::OkStatus();
}

}  // namespace

grpc::Status JobServiceImpl::CreateJob(grpc::ServerContext* rpc,
                                       const v1::CreateJobRequest* request, v1::Job* response) {
  RpcInfo info{"CreateJob", request->job_id(), !request->validate_only()};
  return context_.runner->Unary(*rpc, info, [&](const std::string& caller) {
    const absl::Status status = Create(*request, caller, response);
    // The log names the job that was made.
    if (status.ok()) info.resource = response->name();
    return status;
  });
}

absl::Status JobServiceImpl::Create(const v1::CreateJobRequest& request, const std::string& caller,
                                    v1::Job* response) {
  const auto devices = context_.parts.controller->ListDeviceUse();
  v1::CreateJobRequest resolved = request;
  *resolved.mutable_job() = WithoutOutputFields(request.job());
  jobspec::FillDefaults(resolved.mutable_job(), DeviceType(devices));
  const auto& roots = context_.options->config.allowed_roots();
  TRAIND_RETURN_IF_ERROR(
      jobspec::ValidateCreateJobRequest(resolved, {{roots.begin(), roots.end()}, true}));
  TRAIND_RETURN_IF_ERROR(CheckDevices(resolved.job().resources(), devices));
  if (!request.validate_only()) {
    TRAIND_ASSIGN_OR_RETURN(*response, context_.parts.controller->CreateJob(resolved, caller));
    return absl::OkStatus();
  }
  *response = resolved.job();
  response->set_owner(caller);
  if (request.job_id().empty()) return absl::OkStatus();
  response->set_name(JobName(request.job_id()));
  if (!context_.parts.store->GetJob(response->name()).ok()) return absl::OkStatus();
  return Error(absl::StatusCode::kAlreadyExists, Reason::kJobExists,
               absl::StrCat(response->name(), " exists; choose another job_id"),
               {{"job", response->name()}});
}

grpc::Status JobServiceImpl::GetJob(grpc::ServerContext* rpc, const v1::GetJobRequest* request,
                                    v1::Job* response) {
  const RpcInfo info{"GetJob", request->name()};
  return context_.runner->Unary(*rpc, info, [&](const std::string&) -> absl::Status {
    TRAIND_RETURN_IF_ERROR(ParseJobName(request->name()).status());
    TRAIND_ASSIGN_OR_RETURN(store::JobRecord record, context_.parts.store->GetJob(request->name()));
    *response = std::move(record.job);
    return absl::OkStatus();
  });
}

grpc::Status JobServiceImpl::ListJobs(grpc::ServerContext* rpc, const v1::ListJobsRequest* request,
                                      v1::ListJobsResponse* response) {
  return context_.runner->Unary(*rpc, {"ListJobs", ""},
                                [&](const std::string&) { return List(*request, response); });
}

absl::Status JobServiceImpl::List(const v1::ListJobsRequest& request,
                                  v1::ListJobsResponse* response) {
  store::JobQuery query;
  TRAIND_ASSIGN_OR_RETURN(query.page_size, ResolvePageSize(request.page_size()));
  TRAIND_RETURN_IF_ERROR(CheckStates(request));
  if (request.labels_size() > kMaxLabelFilters) {
    return FieldErrors({{"labels", absl::StrCat("may have ", kMaxLabelFilters, " entries; got ",
                                                request.labels_size())}});
  }
  query.page_token = request.page_token();
  for (const int state : request.states()) {
    query.states.push_back(static_cast<v1::Job::State>(state));
  }
  query.labels.insert(request.labels().begin(), request.labels().end());
  TRAIND_ASSIGN_OR_RETURN(store::JobPage page, context_.parts.store->ListJobs(query));
  response->mutable_jobs()->Add(page.jobs.begin(), page.jobs.end());
  response->set_next_page_token(page.next_page_token);
  return absl::OkStatus();
}

grpc::Status JobServiceImpl::CancelJob(grpc::ServerContext* rpc,
                                       const v1::CancelJobRequest* request, v1::Job* response) {
  const RpcInfo info{"CancelJob", request->name(), true};
  return context_.runner->Unary(*rpc, info, [&](const std::string&) -> absl::Status {
    TRAIND_RETURN_IF_ERROR(ParseJobName(request->name()).status());
    TRAIND_ASSIGN_OR_RETURN(*response,
                            context_.parts.controller->CancelJob(request->name(), request->etag()));
    return absl::OkStatus();
  });
}

grpc::Status JobServiceImpl::DeleteJob(grpc::ServerContext* rpc,
                                       const v1::DeleteJobRequest* request,
                                       google::protobuf::Empty*) {
  const RpcInfo info{"DeleteJob", request->name(), true};
  return context_.runner->Unary(*rpc, info, [&](const std::string&) -> absl::Status {
    TRAIND_RETURN_IF_ERROR(ParseJobName(request->name()).status());
    return context_.parts.controller->DeleteJob(request->name(), request->etag());
  });
}

grpc::Status JobServiceImpl::WatchJob(grpc::ServerContext* rpc, const v1::WatchJobRequest* request,
                                      grpc::ServerWriter<v1::Event>* writer) {
  const RpcInfo info{"WatchJob", request->name()};
  return context_.runner->Stream(*rpc, info, [&](const std::string&) {
    return StreamEvents(context_, *rpc, *request, *writer);
  });
}

grpc::Status JobServiceImpl::ReadLogs(grpc::ServerContext* rpc, const v1::ReadLogsRequest* request,
                                      grpc::ServerWriter<v1::LogChunk>* writer) {
  const RpcInfo info{"ReadLogs", request->name()};
  return context_.runner->Stream(*rpc, info, [&](const std::string&) {
    return StreamLogs(context_, *rpc, *request, *writer);
  });
}

}  // namespace traind::api
