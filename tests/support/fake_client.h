// The daemon without a network: answers with what a test put in, and keeps the requests.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/rpc/client.h"
#include "common/status/errors.h"

namespace traind::client {

// Thread-compatible. Time goes on only by Pause.
class FakeClient : public Client {
 public:
  // What one WatchJob, ReadLogs or DownloadCheckpoint sends, and how it ends.
  template <typename Message>
  struct Script {
    std::vector<Message> messages;
    absl::Status end;
  };

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request) override {
    create_requests.push_back(request);
    if (!create_error.ok()) return create_error;
    v1::Job job = request.job();
    job.set_name("jobs/" + (request.job_id().empty() ? "made" : request.job_id()));
    job.set_state(v1::Job::QUEUED);
    jobs[job.name()].push_back(job);
    return job;
  }

  // The job's answers one after the other; the last one stays.
  absl::StatusOr<v1::Job> GetJob(const v1::GetJobRequest& request) override {
    if (!get_errors.empty()) {
      const absl::Status error = get_errors.front();
      get_errors.pop_front();
      if (!error.ok()) return error;
    }
    auto found = jobs.find(request.name());
    if (found == jobs.end()) return NoJob(request.name());
    v1::Job job = found->second.front();
    if (found->second.size() > 1) found->second.pop_front();
    return job;
  }

  // Pages of `page_size` jobs in the order of names; the token is the next index.
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    list_requests.push_back(request);
    v1::ListJobsResponse response;
    size_t index = 0;
    const size_t first = request.page_token().empty() ? 0 : std::stoul(request.page_token());
    for (const auto& [name, answers] : jobs) {
      if (index >= first && response.jobs_size() < std::min(request.page_size(), page_limit)) {
        *response.add_jobs() = answers.front();
      }
      ++index;
    }
    const size_t next = first + static_cast<size_t>(response.jobs_size());
    if (next < jobs.size()) response.set_next_page_token(std::to_string(next));
    return response;
  }

  absl::StatusOr<v1::Job> CancelJob(const v1::CancelJobRequest& request) override {
    cancel_requests.push_back(request);
    auto found = jobs.find(request.name());
    if (found == jobs.end()) return NoJob(request.name());
    v1::Job job = found->second.front();
    job.set_state(v1::Job::CANCELLING);
    return job;
  }

  absl::Status DeleteJob(const v1::DeleteJobRequest& request) override {
    delete_requests.push_back(request);
    return jobs.erase(request.name()) == 1 ? absl::OkStatus() : NoJob(request.name());
  }

  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      const v1::ListCheckpointsRequest&) override {
    v1::ListCheckpointsResponse response;
    *response.add_checkpoints() = checkpoint;
    return response;
  }
  absl::StatusOr<v1::Checkpoint> GetCheckpoint(const v1::GetCheckpointRequest&) override {
    return checkpoint;
  }
  absl::StatusOr<v1::ListNodesResponse> ListNodes(const v1::ListNodesRequest&) override {
    return nodes;
  }
  absl::StatusOr<v1::ServerInfo> GetServerInfo() override { return info; }
  absl::StatusOr<v1::CheckEnvironmentResponse> CheckEnvironment() override { return environment; }

  absl::Status WatchJob(const v1::WatchJobRequest& request,
                        const OnMessage<v1::Event>& on_message) override {
    watch_requests.push_back(request);
    return Play(watch, on_message);
  }
  absl::Status ReadLogs(const v1::ReadLogsRequest& request,
                        const OnMessage<v1::LogChunk>& on_message) override {
    log_requests.push_back(request);
    return Play(logs, on_message);
  }
  absl::Status DownloadCheckpoint(const v1::DownloadCheckpointRequest& request,
                                  const OnMessage<v1::CheckpointChunk>& on_message) override {
    download_requests.push_back(request);
    return Play(download, on_message);
  }

  bool Pause(absl::Duration duration) override {
    now += duration;
    return !interrupted;
  }
  absl::Time Now() override { return now; }

  std::map<std::string, std::deque<v1::Job>> jobs;
  std::deque<absl::Status> get_errors;
  absl::Status create_error;
  int page_limit = 1000;
  v1::Checkpoint checkpoint;
  v1::ListNodesResponse nodes;
  v1::ServerInfo info;
  v1::CheckEnvironmentResponse environment;
  std::deque<Script<v1::Event>> watch;
  std::deque<Script<v1::LogChunk>> logs;
  std::deque<Script<v1::CheckpointChunk>> download;
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  bool interrupted = false;

  std::vector<v1::CreateJobRequest> create_requests;
  std::vector<v1::ListJobsRequest> list_requests;
  std::vector<v1::CancelJobRequest> cancel_requests;
  std::vector<v1::DeleteJobRequest> delete_requests;
  std::vector<v1::WatchJobRequest> watch_requests;
  std::vector<v1::ReadLogsRequest> log_requests;
  std::vector<v1::DownloadCheckpointRequest> download_requests;

 private:
  static absl::Status NoJob(const std::string& name) {
    return Error(absl::StatusCode::kNotFound, Reason::kJobNotFound, "no job `" + name + "`",
                 {{"job", name}});
  }

  // A script too few is a daemon that is gone.
  template <typename Message>
  static absl::Status Play(std::deque<Script<Message>>& scripts,
                           const OnMessage<Message>& on_message) {
    if (scripts.empty()) return absl::UnavailableError("the fake daemon has no more to say");
    const Script<Message> script = scripts.front();
    scripts.pop_front();
    for (const Message& message : script.messages) {
      if (!on_message(message)) return absl::OkStatus();
    }
    return script.end;
  }
};

}  // namespace traind::client
