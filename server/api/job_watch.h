// The stream of WatchJob.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include "absl/status/status.h"
#include "server/api/service_context.h"
#include "traind/v1/job_service.pb.h"

namespace traind::api {

// How long a stream may take to notice that its client left or that the daemon stops.
inline constexpr absl::Duration kStreamSlice = absl::Milliseconds(500);

// Sends the job's events after `request.after_sequence`, then new ones, with heartbeats, and `end`
// last. Returns when the job has ended, the daemon stops or the client leaves (CANCELLED). Errors:
// NOT_FOUND (JOB_NOT_FOUND), OUT_OF_RANGE (SEQUENCE_OUT_OF_RANGE), INVALID_ARGUMENT
// (INVALID_FIELD).
absl::Status StreamEvents(const ServiceContext& context, const grpc::ServerContext& rpc,
                          const v1::WatchJobRequest& request,
                          grpc::ServerWriter<v1::Event>& writer);

}  // namespace traind::api
