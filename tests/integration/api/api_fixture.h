// A real API server on a Unix socket over a real store, with a controller that the test holds.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"
#include "server/api/api_server.h"
#include "server/store/sqlite_job_store.h"
#include "tests/support/fake_job_controller.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"
#include "traind/v1/checkpoint.grpc.pb.h"
#include "traind/v1/job_service.grpc.pb.h"
#include "traind/v1/node_service.grpc.pb.h"
#include "traind/v1/server_service.grpc.pb.h"

namespace traind {

// Remembers every call. Thread-safe.
class RecordingObserver : public api::RpcObserver {
 public:
  void OnRpcFinished(absl::string_view method, absl::StatusCode code, absl::Duration) override {
    absl::MutexLock lock(&mutex_);
    ++finished_[{std::string(method), code}];
  }
  void OnStreamsChanged(absl::string_view, int change) override {
    absl::MutexLock lock(&mutex_);
    open_streams_ += change;
  }

  int open_streams() {
    absl::MutexLock lock(&mutex_);
    return open_streams_;
  }
  int finished(const std::string& method, absl::StatusCode code) {
    absl::MutexLock lock(&mutex_);
    return finished_[{method, code}];
  }

 private:
  absl::Mutex mutex_;
  std::map<std::pair<std::string, absl::StatusCode>, int> finished_ ABSL_GUARDED_BY(mutex_);
  int open_streams_ ABSL_GUARDED_BY(mutex_) = 0;
};

class ApiFixture : public testing::Test {
 protected:
  void SetUp() override {
    auto store = store::SqliteJobStore::Open({.path = folder_.File("traind.db")});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    controller_ = std::make_unique<FakeJobController>(store_.get(), &hub_, &clock_);
    options_.config.set_state_dir(folder_.path());
    options_.config.add_allowed_roots(folder_.path());
    options_.config.set_listen_unix(folder_.File("traind.sock"));
    options_.config.set_worker_binary("/bin/true");
    options_.version = "1.2.3";
    options_.heartbeat_interval = absl::Milliseconds(50);
    options_.config = config::ResolveConfig(options_.config, config::CurrentHost()).value();
    ASSERT_TRUE(WriteFileAtomically(folder_.File("rows.jsonl"), "{}\n").ok());
    ASSERT_TRUE(CreateDirectories(folder_.File("model")).ok());
  }

  void TearDown() override { StopServer(); }

  absl::Status TryStart() {
    auto server = api::ApiServer::Start(
        options_, {controller_.get(), store_.get(), &hub_, &observer_, &clock_});
    if (server.ok()) server_ = *std::move(server);
    return server.status();
  }

  void StartServer() {
    const absl::Status status = TryStart();
    ASSERT_TRUE(status.ok()) << status;
    Connect(server_->addresses().front(), grpc::InsecureChannelCredentials());
  }

  void StopServer() {
    hub_.Stop();
    if (server_ != nullptr) server_->Stop(absl::Seconds(10));
    server_.reset();
  }

  void Connect(const std::string& address,
               const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
    grpc::ChannelArguments arguments;
    // A connection of its own for each call of Connect.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(address, credentials, arguments);
    jobs_ = v1::JobService::NewStub(channel_);
    checkpoints_ = v1::CheckpointService::NewStub(channel_);
    nodes_ = v1::NodeService::NewStub(channel_);
    info_ = v1::ServerService::NewStub(channel_);
  }

  // A context with a deadline that only a hang reaches.
  static std::unique_ptr<grpc::ClientContext> NewContext() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    return context;
  }

  // A job that is right.
  v1::Job GoodJob() const {
    v1::Job job;
    job.mutable_spec()->mutable_base_model()->set_path(folder_.File("model"));
    job.mutable_spec()->mutable_dataset()->add_train()->set_path(folder_.File("rows.jsonl"));
    return job;
  }

  absl::StatusOr<v1::Job> Create(const v1::CreateJobRequest& request) {
    v1::Job job;
    const auto context = NewContext();
    const absl::Status status = FromGrpcStatus(jobs_->CreateJob(context.get(), request, &job));
    if (!status.ok()) return status;
    return job;
  }

  // Creates `jobs/{id}`.
  v1::Job MustCreate(const std::string& id) {
    v1::CreateJobRequest request;
    *request.mutable_job() = GoodJob();
    request.set_job_id(id);
    const auto job = Create(request);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(v1::Job());
  }

  absl::StatusOr<v1::Job> Get(const std::string& name) {
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    const auto context = NewContext();
    const absl::Status status = FromGrpcStatus(jobs_->GetJob(context.get(), request, &job));
    if (!status.ok()) return status;
    return job;
  }

  std::string Caller(const std::string& authorization = "") {
    v1::ServerInfo response;
    const auto context = NewContext();
    if (!authorization.empty()) context->AddMetadata("authorization", authorization);
    last_ = FromGrpcStatus(info_->GetServerInfo(context.get(), {}, &response));
    return response.caller();
  }

  TempDir folder_;
  SystemClock clock_;
  events::EventHub hub_;
  RecordingObserver observer_;
  std::unique_ptr<store::JobStore> store_;
  std::unique_ptr<FakeJobController> controller_;
  api::ApiOptions options_;
  std::unique_ptr<api::ApiServer> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::CheckpointService::Stub> checkpoints_;
  std::unique_ptr<v1::NodeService::Stub> nodes_;
  std::unique_ptr<v1::ServerService::Stub> info_;
  absl::Status last_;
};

}  // namespace traind
