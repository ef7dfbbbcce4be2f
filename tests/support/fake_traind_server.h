// A daemon of canned answers behind real gRPC, for tests of the real trainctl.
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"
#include "traind/v1/checkpoint.grpc.pb.h"
#include "traind/v1/job_service.grpc.pb.h"
#include "traind/v1/node_service.grpc.pb.h"
#include "traind/v1/server_service.grpc.pb.h"

namespace traind {

// What the fake daemon knows. Set it up before the server starts.
struct FakeTraindData {
  std::map<std::string, v1::Job> jobs;
  std::map<std::string, std::vector<v1::Event>> events;  // Of a job, numbered from 1.
  // Watches that break after so many events, one entry for each call; later ones do not break.
  std::vector<size_t> broken_watches;
  bool events_end = true;  // Whether the stream ends after the last event.
  v1::Checkpoint checkpoint;
  std::vector<std::string> file_contents;  // Of the checkpoint's files.
  absl::Status create_error;
};

// Listens on a Unix socket while it lives. Thread-safe.
class FakeTraindServer {
 public:
  FakeTraindServer(const std::string& socket_path, FakeTraindData data)
      : data_(std::move(data)), jobs_(this), checkpoints_(this), server_service_() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_path, grpc::InsecureServerCredentials());
    builder.RegisterService(&jobs_);
    builder.RegisterService(&checkpoints_);
    builder.RegisterService(&server_service_);
    server_ = builder.BuildAndStart();
  }
  ~FakeTraindServer() { server_->Shutdown(absl::ToChronoTime(absl::Now())); }

  // `after_sequence` of every WatchJob so far.
  std::vector<int64_t> watches() {
    absl::MutexLock lock(&mutex_);
    return watches_;
  }
  std::vector<v1::CreateJobRequest> creates() {
    absl::MutexLock lock(&mutex_);
    return creates_;
  }

 private:
  class Jobs : public v1::JobService::Service {
   public:
    explicit Jobs(FakeTraindServer* owner) : owner_(*owner) {}

    grpc::Status CreateJob(grpc::ServerContext*, const v1::CreateJobRequest* request,
                           v1::Job* response) override {
      absl::MutexLock lock(&owner_.mutex_);
      owner_.creates_.push_back(*request);
      if (!owner_.data_.create_error.ok()) return ToGrpcStatus(owner_.data_.create_error);
      *response = request->job();
      response->set_name("jobs/" + request->job_id());
      response->set_state(v1::Job::QUEUED);
      return grpc::Status::OK;
    }

    grpc::Status GetJob(grpc::ServerContext*, const v1::GetJobRequest* request,
                        v1::Job* response) override {
      return Find(request->name(), response);
    }

    grpc::Status ListJobs(grpc::ServerContext*, const v1::ListJobsRequest*,
                          v1::ListJobsResponse* response) override {
      absl::MutexLock lock(&owner_.mutex_);
      for (const auto& [name, job] : owner_.data_.jobs) *response->add_jobs() = job;
      return grpc::Status::OK;
    }

    grpc::Status CancelJob(grpc::ServerContext*, const v1::CancelJobRequest* request,
                           v1::Job* response) override {
      const grpc::Status status = Find(request->name(), response);
      response->set_state(v1::Job::CANCELLING);
      return status;
    }

    grpc::Status WatchJob(grpc::ServerContext* context, const v1::WatchJobRequest* request,
                          grpc::ServerWriter<v1::Event>* writer) override {
      size_t limit = SIZE_MAX;
      {
        absl::MutexLock lock(&owner_.mutex_);
        const size_t call = owner_.watches_.size();
        if (call < owner_.data_.broken_watches.size()) limit = owner_.data_.broken_watches[call];
        owner_.watches_.push_back(request->after_sequence());
      }
      for (const v1::Event& event : owner_.data_.events[request->name()]) {
        if (event.sequence() <= request->after_sequence()) continue;
        if (limit-- == 0) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "connection reset");
        writer->Write(event);
      }
      v1::Event last;
      if (owner_.data_.events_end) {
        last.mutable_end()->set_reason(v1::StreamEnd::JOB_ENDED);
        writer->Write(last);
        return grpc::Status::OK;
      }
      // Polls until the client goes away.
      while (!context->IsCancelled()) {
        last.mutable_heartbeat();
        writer->Write(last);
        absl::SleepFor(absl::Milliseconds(20));
      }
      return grpc::Status::CANCELLED;
    }

   private:
    grpc::Status Find(const std::string& name, v1::Job* response) {
      absl::MutexLock lock(&owner_.mutex_);
      const auto found = owner_.data_.jobs.find(name);
      if (found == owner_.data_.jobs.end()) {
        return ToGrpcStatus(Error(absl::StatusCode::kNotFound, Reason::kJobNotFound,
                                  "no job `" + name + "`", {{"job", name}}));
      }
      *response = found->second;
      return grpc::Status::OK;
    }

    FakeTraindServer& owner_;
  };

  class Checkpoints : public v1::CheckpointService::Service {
   public:
    explicit Checkpoints(FakeTraindServer* owner) : owner_(*owner) {}

    grpc::Status GetCheckpoint(grpc::ServerContext*, const v1::GetCheckpointRequest*,
                               v1::Checkpoint* response) override {
      *response = owner_.data_.checkpoint;
      return grpc::Status::OK;
    }

    grpc::Status DownloadCheckpoint(grpc::ServerContext*, const v1::DownloadCheckpointRequest*,
                                    grpc::ServerWriter<v1::CheckpointChunk>* writer) override {
      for (int i = 0; i < owner_.data_.checkpoint.files_size(); ++i) {
        v1::CheckpointChunk chunk;
        *chunk.mutable_file() = owner_.data_.checkpoint.files(i);
        chunk.set_data(owner_.data_.file_contents[static_cast<size_t>(i)]);
        writer->Write(chunk);
      }
      return grpc::Status::OK;
    }

   private:
    FakeTraindServer& owner_;
  };

  class Server : public v1::ServerService::Service {
   public:
    grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest*,
                               v1::ServerInfo* response) override {
      response->set_version("0.1.0");
      const auto found = context->client_metadata().find("authorization");
      if (found != context->client_metadata().end()) {
        response->set_caller(std::string(found->second.data(), found->second.size()));
      }
      return grpc::Status::OK;
    }
  };

  absl::Mutex mutex_;
  FakeTraindData data_;
  std::vector<int64_t> watches_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CreateJobRequest> creates_ ABSL_GUARDED_BY(mutex_);
  Jobs jobs_;
  Checkpoints checkpoints_;
  Server server_service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace traind
