#include "tests/support/daemon_client.h"

#include <chrono>
#include <functional>

#include "common/os/file.h"
#include "common/status/grpc_status.h"
#include "gtest/gtest.h"
#include "tests/support/wait_until.h"

namespace traind {
namespace {

void Prepare(grpc::ClientContext& context) {
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
}

template <typename Message>
absl::StatusOr<Message> ToResult(const grpc::Status& status, Message message) {
  if (!status.ok()) return FromGrpcStatus(status);
  return message;
}

bool HasEnded(const v1::Job& job) {
  return job.state() == v1::Job::SUCCEEDED || job.state() == v1::Job::FAILED ||
         job.state() == v1::Job::CANCELLED;
}

}  // namespace

DaemonClient::DaemonClient(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  // A connection of its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  stub_ = v1::JobService::NewStub(grpc::CreateCustomChannel(
      "unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments));
}

absl::StatusOr<v1::Job> DaemonClient::CreateJob(const v1::CreateJobRequest& request) {
  grpc::ClientContext context;
  Prepare(context);
  v1::Job job;
  const grpc::Status status = stub_->CreateJob(&context, request, &job);
  return ToResult(status, std::move(job));
}

absl::StatusOr<v1::Job> DaemonClient::GetJob(const std::string& name) {
  grpc::ClientContext context;
  Prepare(context);
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  const grpc::Status status = stub_->GetJob(&context, request, &job);
  return ToResult(status, std::move(job));
}

absl::StatusOr<v1::Job> DaemonClient::CancelJob(const std::string& name) {
  grpc::ClientContext context;
  Prepare(context);
  v1::CancelJobRequest request;
  request.set_name(name);
  v1::Job job;
  const grpc::Status status = stub_->CancelJob(&context, request, &job);
  return ToResult(status, std::move(job));
}

absl::StatusOr<std::vector<v1::Job>> DaemonClient::ListJobs() {
  grpc::ClientContext context;
  Prepare(context);
  v1::ListJobsResponse response;
  const grpc::Status status = stub_->ListJobs(&context, v1::ListJobsRequest(), &response);
  return ToResult(status, std::vector<v1::Job>(response.jobs().begin(), response.jobs().end()));
}

std::vector<v1::Event> DaemonClient::Watch(const std::string& name, int64_t sequence, size_t enough,
                                           const std::function<void()>& on_event) {
  grpc::ClientContext context;
  Prepare(context);
  v1::WatchJobRequest request;
  request.set_name(name);
  request.set_after_sequence(sequence);
  const auto stream = stub_->WatchJob(&context, request);
  std::vector<v1::Event> events;
  v1::Event event;
  while ((enough == 0 || events.size() < enough) && stream->Read(&event)) {
    if (!event.has_heartbeat()) events.push_back(event);
    on_event();
  }
  const bool cut = enough > 0 && events.size() >= enough;
  if (cut) context.TryCancel();
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(cut || status.ok()) << status.error_code() << ": " << status.error_message();
  return events;
}

v1::Job DaemonClient::WaitFor(const std::string& name, v1::Job::State state) {
  v1::Job now;
  WaitUntil(
      [&] {
        const absl::StatusOr<v1::Job> job = GetJob(name);
        EXPECT_TRUE(job.ok()) << job.status();
        now = job.value_or(v1::Job());
        return !job.ok() || now.state() == state || HasEnded(now);
      },
      absl::Seconds(60));
  return now;
}

v1::Job DaemonClient::WaitForStep(const std::string& name, int64_t step) {
  v1::Job now;
  WaitUntil(
      [&] {
        const absl::StatusOr<v1::Job> job = GetJob(name);
        EXPECT_TRUE(job.ok()) << job.status();
        now = job.value_or(v1::Job());
        return !job.ok() || now.progress().step() >= step || HasEnded(now);
      },
      absl::Seconds(60));
  return now;
}

v1::CreateJobRequest MakeJobRequest(const std::string& folder, const std::string& job_id) {
  EXPECT_TRUE(CreateDirectories(folder + "/model").ok());
  EXPECT_TRUE(WriteFileAtomically(folder + "/rows.jsonl", "{\"text\": \"a row\"}\n").ok());
  v1::CreateJobRequest request;
  request.set_job_id(job_id);
  request.mutable_job()->mutable_spec()->mutable_base_model()->set_path(folder + "/model");
  request.mutable_job()->mutable_spec()->mutable_dataset()->add_train()->set_path(folder +
                                                                                  "/rows.jsonl");
  request.mutable_job()->mutable_resources()->set_max_retries(1);
  return request;
}

bool IsDense(const std::vector<v1::Event>& events, int64_t first) {
  for (const v1::Event& event : events) {
    if (event.has_end()) continue;
    if (event.sequence() != first++) return false;
  }
  return true;
}

std::vector<int64_t> StepsOf(const std::vector<v1::Event>& events) {
  std::vector<int64_t> steps;
  for (const v1::Event& event : events) {
    if (event.has_step()) steps.push_back(event.step().step());
  }
  return steps;
}

}  // namespace traind
