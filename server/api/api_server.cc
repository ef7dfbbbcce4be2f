#include "server/api/api_server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server_posix.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/status/errors.h"
#include "server/api/authenticator.h"
#include "server/api/checkpoint_service_impl.h"
#include "server/api/job_service_impl.h"
#include "server/api/node_service_impl.h"
#include "server/api/peer_registry.h"
#include "server/api/rpc_runner.h"
#include "server/api/server_service_impl.h"
#include "server/api/tcp_listener.h"
#include "server/api/unix_listener.h"

namespace traind::api {
namespace {

// Threads beyond those of the streams, for unary calls.
constexpr int kUnaryThreads = 128;
// For the last bytes of calls that have ended.
constexpr absl::Duration kFlushLimit = absl::Milliseconds(300);
// A TCP peer that vanished is noticed within their sum.
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 10'000;
// Clients may look whether we are there as often as this.
constexpr int kMinClientPingMs = 5'000;

void SetChannelOptions(int max_streams, grpc::ServerBuilder& builder) {
  // Two daemons must not share a port without noticing.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kMinClientPingMs);
  grpc::ResourceQuota quota("traind.api");
  quota.SetMaxThreads(max_streams + kUnaryThreads);
  builder.SetResourceQuota(quota);
}

}  // namespace

// Everything behind the public class; members in the order in which they are built.
class ApiServer::Parts {
 public:
  Parts(ApiOptions options, const ApiDependencies& dependencies)
      : options_(std::move(options)), dependencies_(dependencies) {}

  absl::Status Start() {
    TRAIND_ASSIGN_OR_RETURN(Authenticator authenticator,
                            Authenticator::Create(options_.config, &peers_));
    authenticator_.emplace(std::move(authenticator));
    TRAIND_ASSIGN_OR_RETURN(
        unix_listener_,
        UnixListener::Listen(options_.config.listen_unix(), config::SocketMode(options_.config)));
    MakeServices();
    TRAIND_RETURN_IF_ERROR(BuildServer());
    addresses_.insert(addresses_.begin(), absl::StrCat("unix:", options_.config.listen_unix()));
    server_->GetHealthCheckService()->SetServingStatus(true);
    unix_listener_->StartAccepting(
        [this](int descriptor, uid_t uid) { TakeConnection(descriptor, uid); });
    return absl::OkStatus();
  }

  void Stop(absl::Duration deadline) {
    if (server_ == nullptr) return;
    runner_->BeginStop();
    server_->GetHealthCheckService()->Shutdown();
    unix_listener_->Stop();
    runner_->WaitUntilIdle(deadline);
    // An idle client notices only after seconds that we are leaving; the answers to calls that have
    // just ended are on their way.
    server_->Shutdown(absl::ToChronoTime(absl::Now() + std::min(deadline, kFlushLimit)));
    server_->Wait();
    server_.reset();
  }

  const std::vector<std::string>& addresses() const { return addresses_; }

 private:
  void MakeServices() {
    runner_.emplace(&*authenticator_, dependencies_.observer, options_.max_streams);
    const ServiceContext context{&options_, dependencies_, &*runner_};
    jobs_.emplace(context);
    checkpoints_.emplace(context);
    nodes_.emplace(context);
    server_service_.emplace(context, &addresses_);
  }

  absl::Status BuildServer() {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    SetChannelOptions(options_.max_streams, builder);
    int port = 0;
    TRAIND_RETURN_IF_ERROR(AddTcpListener(builder, &port));
    builder.RegisterService(&*jobs_);
    builder.RegisterService(&*checkpoints_);
    builder.RegisterService(&*nodes_);
    builder.RegisterService(&*server_service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      const std::string& address = options_.config.listen_tcp().address();
      return Error(absl::StatusCode::kFailedPrecondition, Reason::kAddressInUse,
                   absl::StrCat("cannot listen on ", address, "; choose another port"),
                   {{"address", address}});
    }
    if (port != 0) AddTcpAddress(port);
    return absl::OkStatus();
  }

  absl::Status AddTcpListener(grpc::ServerBuilder& builder, int* port) {
    if (!options_.config.has_listen_tcp()) return absl::OkStatus();
    const config::v1::TcpListener& listener = options_.config.listen_tcp();
    TRAIND_RETURN_IF_ERROR(CheckAddressIsFree(listener.address()));
    TRAIND_ASSIGN_OR_RETURN(const auto credentials, MakeServerCredentials(listener));
    builder.AddListeningPort(listener.address(), credentials, port);
    return absl::OkStatus();
  }

  void AddTcpAddress(int port) {
    const std::string& address = options_.config.listen_tcp().address();
    addresses_.push_back(absl::StrCat(address.substr(0, address.rfind(':')), ":", port));
  }

  // On the accepting thread, which Stop ends before the server.
  void TakeConnection(int descriptor, uid_t uid) {
    const int registered = peers_.Register(descriptor, uid);
    if (registered < 0) {
      Log(LogLevel::kWarn, "connection.refused", {{"caller", absl::StrCat("user:", uid)}},
          "no file descriptor is left; raise the limit of open files");
      return;
    }
    grpc::AddInsecureChannelFromFd(server_.get(), registered);
  }

  const ApiOptions options_;
  const ApiDependencies dependencies_;
  PeerRegistry peers_;
  std::vector<std::string> addresses_;
  std::optional<Authenticator> authenticator_;
  std::optional<RpcRunner> runner_;
  std::optional<JobServiceImpl> jobs_;
  std::optional<CheckpointServiceImpl> checkpoints_;
  std::optional<NodeServiceImpl> nodes_;
  std::optional<ServerServiceImpl> server_service_;
  std::unique_ptr<UnixListener> unix_listener_;
  std::unique_ptr<grpc::Server> server_;
};

absl::StatusOr<std::unique_ptr<ApiServer>> ApiServer::Start(ApiOptions options,
                                                            const ApiDependencies& dependencies) {
  auto parts = std::make_unique<Parts>(std::move(options), dependencies);
  TRAIND_RETURN_IF_ERROR(parts->Start());
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(parts)));
}

ApiServer::ApiServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

ApiServer::~ApiServer() { Stop(absl::ZeroDuration()); }

const std::vector<std::string>& ApiServer::addresses() const { return parts_->addresses(); }

void ApiServer::Stop(absl::Duration deadline) { parts_->Stop(deadline); }

}  // namespace traind::api
