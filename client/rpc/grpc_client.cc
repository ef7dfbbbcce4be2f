#include "client/rpc/grpc_client.h"

#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "common/status/errors.h"
#include "common/status/grpc_status.h"
#include "traind/v1/checkpoint.grpc.pb.h"
#include "traind/v1/job_service.grpc.pb.h"
#include "traind/v1/node_service.grpc.pb.h"
#include "traind/v1/server_service.grpc.pb.h"

namespace traind::client {
namespace {

// How often a waiting call looks for an interruption.
constexpr absl::Duration kPoll = absl::Milliseconds(50);
constexpr absl::Duration kConnectTimeout = absl::Seconds(10);
constexpr int kMaxMessageBytes = 64 << 20;

// Repeats of unary calls (AIP-194: UNAVAILABLE only). Streams get no policy: gRPC would never
// repeat them after the first message anyway, and their callers resume them.
constexpr char kServiceConfig[] = R"({"methodConfig": [{
  "name": [{"service": "traind.v1.JobService", "method": "CreateJob"},
           {"service": "traind.v1.JobService", "method": "GetJob"},
           {"service": "traind.v1.JobService", "method": "ListJobs"},
           {"service": "traind.v1.JobService", "method": "CancelJob"},
           {"service": "traind.v1.JobService", "method": "DeleteJob"},
           {"service": "traind.v1.CheckpointService", "method": "ListCheckpoints"},
           {"service": "traind.v1.CheckpointService", "method": "GetCheckpoint"},
           {"service": "traind.v1.NodeService"}, {"service": "traind.v1.ServerService"}],
  "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.1s", "maxBackoff": "2s",
                  "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]})";

std::chrono::system_clock::time_point Deadline(absl::Duration timeout) {
  return absl::ToChronoTime(absl::Now() + timeout);
}

absl::Status Interrupted() { return absl::CancelledError("interrupted"); }

// What connect(2) says about a socket that gRPC could not connect to.
std::string SocketProblem(absl::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return std::strerror(errno);
  const int result =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = result == 0 ? 0 : errno;
  close(descriptor);
  if (error == 0) return "the connection was closed";
  if (error == ENOENT) return "there is no such socket";
  if (error == ECONNREFUSED) return "nobody listens on this socket";
  return std::strerror(error);
}

absl::Status Unreachable(const Endpoint& endpoint) {
  absl::string_view path = endpoint.target;
  std::string problem = "no answer";
  if (absl::ConsumePrefix(&path, "unix:")) {
    problem = SocketProblem(path);
  } else if (endpoint.tls) {
    problem = "no answer, or its TLS certificate is not trusted (see --ca-file)";
  }
  const std::string tried =
      endpoint.sockets.empty()
          ? absl::StrCat("at ", endpoint.target, ": ", problem)
          : absl::StrCat("(no socket at ", absl::StrJoin(endpoint.sockets, ", "), ")");
  return Error(absl::StatusCode::kUnavailable, Reason::kUnspecified,
               absl::StrCat("cannot reach the daemon ", tried,
                            "; start it with `traind`, or say where it is with --server"),
               {{"server", endpoint.target}});
}

// One call, driven on the caller's thread so that an interruption ends it soon.
class Call {
 public:
  Call(const GrpcClientOptions& options, absl::Duration silence_limit)
      : options_(options), silence_limit_(silence_limit) {
    if (!options.token.empty()) {
      context_.AddMetadata("authorization", absl::StrCat("Bearer ", options.token));
    }
  }
  // The queue must be empty when it goes; every operation was waited for.
  ~Call() {
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  grpc::ClientContext* context() { return &context_; }
  grpc::CompletionQueue* queue() { return &queue_; }

  // Waits for the one operation that is under way. Cancels the call if the user interrupts or
  // nothing comes for too long, and then still waits. Returns whether the operation worked.
  bool Wait() {
    const absl::Time start = absl::Now();
    for (;;) {
      // Before the wait too: a busy stream may never let it time out.
      if (options_.interrupt != nullptr && options_.interrupt->requested()) Cancel(Interrupted());
      void* tag;
      bool ok = false;
      const auto next = queue_.AsyncNext(&tag, &ok, Deadline(kPoll));
      if (next == grpc::CompletionQueue::GOT_EVENT) return ok;
      if (next == grpc::CompletionQueue::SHUTDOWN) return false;
      if (absl::Now() - start > silence_limit_) {
        Cancel(absl::UnavailableError(absl::StrCat("no sign of life from the daemon for ",
                                                   absl::FormatDuration(silence_limit_))));
      }
    }
  }

  void Cancel(const absl::Status& why) {
    if (cancelled_) return;
    cancelled_ = why;
    context_.TryCancel();
  }

  absl::Status Result(const grpc::Status& status) const {
    return cancelled_ ? *cancelled_ : FromGrpcStatus(status);
  }

 private:
  const GrpcClientOptions& options_;
  const absl::Duration silence_limit_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::optional<absl::Status> cancelled_;
};

class GrpcClient : public Client {
 public:
  explicit GrpcClient(GrpcClientOptions options) : options_(std::move(options)) {
    grpc::ChannelArguments arguments;
    arguments.SetServiceConfigJSON(kServiceConfig);
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 200);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
    channel_ = grpc::CreateCustomChannel(options_.endpoint.target, Credentials(), arguments);
    jobs_ = v1::JobService::NewStub(channel_);
    checkpoints_ = v1::CheckpointService::NewStub(channel_);
    nodes_ = v1::NodeService::NewStub(channel_);
    server_ = v1::ServerService::NewStub(channel_);
  }

  absl::StatusOr<v1::Job> CreateJob(const v1::CreateJobRequest& request) override {
    return Unary<v1::Job>(*jobs_, &v1::JobService::Stub::PrepareAsyncCreateJob, request);
  }
  absl::StatusOr<v1::Job> GetJob(const v1::GetJobRequest& request) override {
    return Unary<v1::Job>(*jobs_, &v1::JobService::Stub::PrepareAsyncGetJob, request);
  }
  absl::StatusOr<v1::ListJobsResponse> ListJobs(const v1::ListJobsRequest& request) override {
    return Unary<v1::ListJobsResponse>(*jobs_, &v1::JobService::Stub::PrepareAsyncListJobs,
                                       request);
  }
  absl::StatusOr<v1::Job> CancelJob(const v1::CancelJobRequest& request) override {
    return Unary<v1::Job>(*jobs_, &v1::JobService::Stub::PrepareAsyncCancelJob, request);
  }
  absl::Status DeleteJob(const v1::DeleteJobRequest& request) override {
    return Unary<google::protobuf::Empty>(*jobs_, &v1::JobService::Stub::PrepareAsyncDeleteJob,
                                          request)
        .status();
  }
  absl::StatusOr<v1::ListCheckpointsResponse> ListCheckpoints(
      const v1::ListCheckpointsRequest& request) override {
    return Unary<v1::ListCheckpointsResponse>(
        *checkpoints_, &v1::CheckpointService::Stub::PrepareAsyncListCheckpoints, request);
  }
  absl::StatusOr<v1::Checkpoint> GetCheckpoint(const v1::GetCheckpointRequest& request) override {
    return Unary<v1::Checkpoint>(*checkpoints_,
                                 &v1::CheckpointService::Stub::PrepareAsyncGetCheckpoint, request);
  }
  absl::StatusOr<v1::ListNodesResponse> ListNodes(const v1::ListNodesRequest& request) override {
    return Unary<v1::ListNodesResponse>(*nodes_, &v1::NodeService::Stub::PrepareAsyncListNodes,
                                        request);
  }
  absl::StatusOr<v1::ServerInfo> GetServerInfo() override {
    return Unary<v1::ServerInfo>(*server_, &v1::ServerService::Stub::PrepareAsyncGetServerInfo,
                                 v1::GetServerInfoRequest());
  }
  absl::StatusOr<v1::CheckEnvironmentResponse> CheckEnvironment() override {
    return Unary<v1::CheckEnvironmentResponse>(
        *server_, &v1::ServerService::Stub::PrepareAsyncCheckEnvironment,
        v1::CheckEnvironmentRequest());
  }

  absl::Status WatchJob(const v1::WatchJobRequest& request,
                        const OnMessage<v1::Event>& on_message) override {
    return Stream<v1::Event>(*jobs_, &v1::JobService::Stub::PrepareAsyncWatchJob, request,
                             on_message, options_.watch_silence_limit);
  }
  absl::Status ReadLogs(const v1::ReadLogsRequest& request,
                        const OnMessage<v1::LogChunk>& on_message) override {
    return Stream<v1::LogChunk>(*jobs_, &v1::JobService::Stub::PrepareAsyncReadLogs, request,
                                on_message, absl::InfiniteDuration());
  }
  absl::Status DownloadCheckpoint(const v1::DownloadCheckpointRequest& request,
                                  const OnMessage<v1::CheckpointChunk>& on_message) override {
    return Stream<v1::CheckpointChunk>(*checkpoints_,
                                       &v1::CheckpointService::Stub::PrepareAsyncDownloadCheckpoint,
                                       request, on_message, absl::InfiniteDuration());
  }

  bool Pause(absl::Duration duration) override {
    const absl::Time end = absl::Now() + duration;
    while (absl::Now() < end) {
      if (IsInterrupted()) return false;
      absl::SleepFor(std::min(kPoll, end - absl::Now()));
    }
    return !IsInterrupted();
  }
  absl::Time Now() override { return absl::Now(); }

 private:
  bool IsInterrupted() const {
    return options_.interrupt != nullptr && options_.interrupt->requested();
  }

  std::shared_ptr<grpc::ChannelCredentials> Credentials() const {
    if (!options_.endpoint.tls) return grpc::InsecureChannelCredentials();
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = options_.ca_certificates;
    return grpc::SslCredentials(tls);
  }

  // Says what is wrong with the connection itself, before a call would fail with less to say.
  absl::Status Connect() {
    const absl::Time deadline = absl::Now() + std::min(kConnectTimeout, options_.timeout);
    for (;;) {
      const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
      if (state == GRPC_CHANNEL_READY) return absl::OkStatus();
      if (state == GRPC_CHANNEL_TRANSIENT_FAILURE || state == GRPC_CHANNEL_SHUTDOWN ||
          absl::Now() > deadline) {
        return Unreachable(options_.endpoint);
      }
      if (IsInterrupted()) return Interrupted();
      channel_->WaitForStateChange(state, Deadline(kPoll));
    }
  }

  template <typename Response, typename Stub, typename Prepare, typename Request>
  absl::StatusOr<Response> Unary(Stub& stub, Prepare prepare, const Request& request) {
    TRAIND_RETURN_IF_ERROR(Connect());
    Call call(options_, absl::InfiniteDuration());
    call.context()->set_deadline(Deadline(options_.timeout));
    auto reader = (stub.*prepare)(call.context(), request, call.queue());
    Response response;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&response, &status, nullptr);
    call.Wait();
    TRAIND_RETURN_IF_ERROR(call.Result(status));
    return response;
  }

  template <typename Message, typename Stub, typename Prepare, typename Request>
  absl::Status Stream(Stub& stub, Prepare prepare, const Request& request,
                      const OnMessage<Message>& on_message, absl::Duration silence_limit) {
    TRAIND_RETURN_IF_ERROR(Connect());
    Call call(options_, silence_limit);
    auto reader = (stub.*prepare)(call.context(), request, call.queue());
    reader->StartCall(nullptr);
    bool more = call.Wait();
    while (more) {
      Message message;
      reader->Read(&message, nullptr);
      more = call.Wait();
      if (more && !on_message(message)) {
        call.Cancel(absl::OkStatus());
        more = false;
      }
    }
    grpc::Status status;
    reader->Finish(&status, nullptr);
    call.Wait();
    return call.Result(status);
  }

  const GrpcClientOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::JobService::Stub> jobs_;
  std::unique_ptr<v1::CheckpointService::Stub> checkpoints_;
  std::unique_ptr<v1::NodeService::Stub> nodes_;
  std::unique_ptr<v1::ServerService::Stub> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> MakeGrpcClient(GrpcClientOptions options) {
  for (const char byte : options.token) {
    if (!absl::ascii_isgraph(static_cast<unsigned char>(byte))) {
      return Error(absl::StatusCode::kInvalidArgument, Reason::kUnspecified,
                   "the token has a space or another character that no token has; check "
                   "--token-file and TRAIND_TOKEN",
                   {});
    }
  }
  return std::unique_ptr<Client>(new GrpcClient(std::move(options)));
}

}  // namespace traind::client
