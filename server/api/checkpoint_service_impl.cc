#include "server/api/checkpoint_service_impl.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "common/names/resource_name.h"
#include "common/status/errors.h"
#include "server/api/checkpoint_download.h"
#include "server/api/paging.h"

namespace traind::api {
namespace {

// Where a checkpoint stands in its list: by step, the adapter last.
int64_t Position(const std::string& name) {
  int64_t step = 0;
  const size_t slash = name.rfind('/');
  if (absl::SimpleAtoi(name.substr(slash + 1), &step)) return step;
  return std::numeric_limits<int64_t>::max();
}

// A token is the name of the last checkpoint that was sent. It stays right if that one is removed.
absl::StatusOr<int64_t> PositionOfToken(const std::string& token, const std::string& parent) {
  if (token.empty()) return -1;
  std::string name;
  if (!absl::WebSafeBase64Unescape(token, &name)) return BadPageToken();
  const auto parsed = ParseCheckpointName(name);
  if (!parsed.ok() || parsed->job_name != parent) return BadPageToken();
  return Position(name);
}

}  // namespace

grpc::Status CheckpointServiceImpl::ListCheckpoints(grpc::ServerContext* rpc,
                                                    const v1::ListCheckpointsRequest* request,
                                                    v1::ListCheckpointsResponse* response) {
  return context_.runner->Unary(*rpc, {"ListCheckpoints", request->parent()},
                                [&](const std::string&) { return List(*request, response); });
}

absl::Status CheckpointServiceImpl::List(const v1::ListCheckpointsRequest& request,
                                         v1::ListCheckpointsResponse* response) const {
  TRAIND_RETURN_IF_ERROR(ParseJobName(request.parent(), "parent").status());
  TRAIND_ASSIGN_OR_RETURN(const int page_size, ResolvePageSize(request.page_size()));
  TRAIND_ASSIGN_OR_RETURN(const int64_t after,
                          PositionOfToken(request.page_token(), request.parent()));
  TRAIND_ASSIGN_OR_RETURN(const store::JobRecord record,
                          context_.parts.store->GetJob(request.parent()));
  TRAIND_ASSIGN_OR_RETURN(std::vector<v1::Checkpoint> checkpoints, catalog_.List(record.job));
  for (v1::Checkpoint& checkpoint : checkpoints) {
    if (Position(checkpoint.name()) <= after) continue;
    if (response->checkpoints_size() == page_size) {
      const std::string& last = response->checkpoints().rbegin()->name();
      response->set_next_page_token(absl::WebSafeBase64Escape(last));
      break;
    }
    *response->add_checkpoints() = std::move(checkpoint);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Checkpoint> CheckpointServiceImpl::Find(const std::string& name) const {
  TRAIND_ASSIGN_OR_RETURN(const CheckpointId id, ParseCheckpointName(name));
  TRAIND_ASSIGN_OR_RETURN(const store::JobRecord record, context_.parts.store->GetJob(id.job_name));
  return catalog_.Get(record.job, id.checkpoint_id);
}

grpc::Status CheckpointServiceImpl::GetCheckpoint(grpc::ServerContext* rpc,
                                                  const v1::GetCheckpointRequest* request,
                                                  v1::Checkpoint* response) {
  const RpcInfo info{"GetCheckpoint", request->name()};
  return context_.runner->Unary(*rpc, info, [&](const std::string&) -> absl::Status {
    TRAIND_ASSIGN_OR_RETURN(*response, Find(request->name()));
    return absl::OkStatus();
  });
}

grpc::Status CheckpointServiceImpl::DownloadCheckpoint(
    grpc::ServerContext* rpc, const v1::DownloadCheckpointRequest* request,
    grpc::ServerWriter<v1::CheckpointChunk>* writer) {
  const RpcInfo info{"DownloadCheckpoint", request->name()};
  return context_.runner->Stream(*rpc, info, [&](const std::string&) -> absl::Status {
    TRAIND_ASSIGN_OR_RETURN(const v1::Checkpoint checkpoint, Find(request->name()));
    return StreamCheckpoint(*context_.runner, checkpoint, request->offset(), *writer);
  });
}

}  // namespace traind::api
