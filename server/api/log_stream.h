// The stream of ReadLogs.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include "absl/status/status.h"
#include "server/api/service_context.h"
#include "traind/v1/job_service.pb.h"

namespace traind::api {

// Sends the log of one attempt from `request.offset` on. With `follow` goes on until the attempt
// has ended, with an empty chunk as a sign of life; a job without an attempt is waited for. Errors:
// NOT_FOUND (JOB_NOT_FOUND), INVALID_ARGUMENT (INVALID_FIELD) for an attempt that does not exist,
// OUT_OF_RANGE (INVALID_FIELD) for an offset beyond the end, UNAVAILABLE (DRAINING) if the daemon
// stops: call again with the last `next_offset`.
absl::Status StreamLogs(const ServiceContext& context, const grpc::ServerContext& rpc,
                        const v1::ReadLogsRequest& request,
                        grpc::ServerWriter<v1::LogChunk>& writer);

}  // namespace traind::api
