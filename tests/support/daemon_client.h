// A client of a daemon in a test, over its Unix socket.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "traind/v1/job_service.grpc.pb.h"

namespace traind {

// Calls wait for a daemon that is not there (yet), but not for ever. Thread-safe.
class DaemonClient {
 public:
  explicit DaemonClient(const std::string& socket_path);

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request);
  absl::StatusOr<v1::Job> GetJob(const std::string& name);
  absl::StatusOr<v1::Job> CancelJob(const std::string& name);
  absl::StatusOr<std::vector<v1::Job>> ListJobs();

  // Events after `sequence` until the stream ends, without heartbeats. If `enough` is positive, at
  // most so many. `on_event` is called after each.
  std::vector<v1::Event> Watch(
      const std::string& name, int64_t sequence, size_t enough = 0,
      const std::function<void()>& on_event = [] {});

  // The job once it is in `state` or has ended; the last one seen if that takes too long.
  v1::Job WaitFor(const std::string& name, v1::Job::State state);
  v1::Job WaitForStep(const std::string& name, int64_t step);

 private:
  std::unique_ptr<v1::JobService::Stub> stub_;
};

// A request for a job whose files exist below `folder`.
v1::CreateJobRequest MakeJobRequest(const std::string& folder, const std::string& job_id = "");

// Whether the sequence numbers are `first`, `first` + 1 and so on, apart from the closing message.
bool IsDense(const std::vector<v1::Event>& events, int64_t first = 1);

// The updates that were reported, in order.
std::vector<int64_t> StepsOf(const std::vector<v1::Event>& events);

}  // namespace traind
