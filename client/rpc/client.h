// The daemon, as commands see it.
//
// Errors are those of the API (docs/errors.md), and also: UNAVAILABLE if the daemon cannot be
// reached, CANCELLED if the user interrupted, DEADLINE_EXCEEDED.
#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "traind/v1/checkpoint.pb.h"
#include "traind/v1/event.pb.h"
#include "traind/v1/job.pb.h"
#include "traind/v1/job_service.pb.h"
#include "traind/v1/node_service.pb.h"
#include "traind/v1/server_service.pb.h"

namespace traind::client {

// Gets each message of a stream; returns whether it wants more.
template <typename Message>
using OnMessage = std::function<bool(const Message&)>;

// Calls are idempotent (CreateJob with its request_id), so unary ones are repeated by the
// implementation while the daemon is briefly unavailable. Streams are not: their callers resume
// them where they broke. Thread-compatible.
class Client {
 public:
  virtual ~Client() = default;

  virtual absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> GetJob(const v1::GetJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) = 0;
  virtual absl::StatusOr<v1::Job> CancelJob(const v1::CancelJobRequest& request) = 0;
  virtual absl::Status DeleteJob(const v1::DeleteJobRequest& request) = 0;
  virtual absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      const v1::ListCheckpointsRequest& request) = 0;
  virtual absl::StatusOr<v1::Checkpoint> GetCheckpoint(const v1::GetCheckpointRequest& request) = 0;
  virtual absl::StatusOr<v1::ListNodesResponse> ListNodes(const v1::ListNodesRequest& request) = 0;
  virtual absl::StatusOr<v1::ServerInfo> GetServerInfo() = 0;
  virtual absl::StatusOr<v1::CheckEnvironmentResponse> CheckEnvironment() = 0;

  // OK if the stream ended well or `on_message` wanted no more.
  virtual absl::Status WatchJob(const v1::WatchJobRequest& request,
                                const OnMessage<v1::Event>& on_message) = 0;
  virtual absl::Status ReadLogs(const v1::ReadLogsRequest& request,
                                const OnMessage<v1::LogChunk>& on_message) = 0;
  virtual absl::Status DownloadCheckpoint(const v1::DownloadCheckpointRequest& request,
                                          const OnMessage<v1::CheckpointChunk>& on_message) = 0;

  // Waits, to try again or to look again; false if the user interrupted.
  virtual bool Pause(absl::Duration duration) = 0;
  virtual absl::Time Now() = 0;
};

}  // namespace traind::client
