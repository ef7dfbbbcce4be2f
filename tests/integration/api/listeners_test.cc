// Who may connect and how: sockets, TLS, tokens; and the services that describe the daemon.
#include <grpcpp/generic/generic_stub.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>
#include <fstream>

#include "tests/integration/api/api_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kToken[] = "correct-horse-battery-staple";

class ApiListenersTest : public ApiFixture {
 protected:
  config::v1::TcpListener* tcp() { return options_.config.mutable_listen_tcp(); }

  // A self-signed certificate for localhost.
  void MakeCertificate(const std::string& name) {
    const std::string command = absl::StrCat(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout ",
        folder_.File(name + ".key"), " -out ", folder_.File(name + ".crt"), " 2> ",
        folder_.File("openssl.log"));
    ASSERT_EQ(std::system(command.c_str()), 0)
        << ReadFile(folder_.File("openssl.log")).value_or("");
  }

  void UseTls() {
    MakeCertificate("server");
    std::ofstream(folder_.File("tokens")) << "# callers\n\nci:" << kToken << "\n";
    ASSERT_EQ(chmod(folder_.File("tokens").c_str(), 0600), 0);
    tcp()->set_address("127.0.0.1:0");
    tcp()->set_tls_certificate_file(folder_.File("server.crt"));
    tcp()->set_tls_key_file(folder_.File("server.key"));
    tcp()->set_token_file(folder_.File("tokens"));
  }

  void ConnectWithTls() {
    grpc::SslCredentialsOptions trust;
    trust.pem_root_certs = ReadFile(folder_.File("server.crt")).value();
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("localhost");
    channel_ = grpc::CreateCustomChannel(server_->addresses().at(1), grpc::SslCredentials(trust),
                                         arguments);
    info_ = v1::ServerService::NewStub(channel_);
    jobs_ = v1::JobService::NewStub(channel_);
  }
};

TEST_F(ApiListenersTest, TheSocketHasItsModeAndIsRemovedAtTheEnd) {
  options_.config.set_unix_socket_mode("0600");
  StartServer();
  struct stat info;
  ASSERT_EQ(stat(options_.config.listen_unix().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(Caller(), absl::StrCat("user:", getuid()));
  StopServer();
  EXPECT_FALSE(FileExists(options_.config.listen_unix()));
}

TEST_F(ApiListenersTest, ConnectionAfterConnectionHasItsCaller) {
  StartServer();
  for (int i = 0; i < 20; ++i) {
    Connect(server_->addresses()[0], grpc::InsecureChannelCredentials());
    EXPECT_EQ(Caller(), absl::StrCat("user:", getuid())) << last_;
  }
}

TEST_F(ApiListenersTest, ASocketThatIsListenedOnIsInUse) {
  StartServer();
  events::EventHub hub;
  const auto second =
      api::ApiServer::Start(options_, {controller_.get(), store_.get(), &hub, nullptr, &clock_});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(second.status()), Reason::kAddressInUse);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(options_.config.listen_unix()));
  EXPECT_EQ(Caller(), absl::StrCat("user:", getuid())) << "the first one goes on";
}

TEST_F(ApiListenersTest, ASocketFileOfADeadProcessIsReplaced) {
  const int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  options_.config.listen_unix().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(dead, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(dead);
  StartServer();
  EXPECT_EQ(Caller(), absl::StrCat("user:", getuid()));
}

TEST_F(ApiListenersTest, AnotherFileIsNeverRemoved) {
  ASSERT_TRUE(WriteFileAtomically(options_.config.listen_unix(), "precious").ok());
  const absl::Status status = TryStart();
  EXPECT_EQ(ReasonOf(status), Reason::kAddressInUse);
  EXPECT_EQ(ReadFile(options_.config.listen_unix()).value(), "precious");
}

TEST_F(ApiListenersTest, TlsWithATokenNamesTheCaller) {
  UseTls();
  StartServer();
  ConnectWithTls();
  EXPECT_EQ(Caller(absl::StrCat("Bearer ", kToken)), "token:ci") << last_;
  EXPECT_EQ(Caller(absl::StrCat("bearer ", kToken)), "token:ci") << last_;
}

TEST_F(ApiListenersTest, WithoutTheRightTokenNothingIsTold) {
  UseTls();
  StartServer();
  ConnectWithTls();
  for (const std::string wrong : {"", "Bearer wrong-horse-battery-staple", "Bearer ", "Basic abc",
                                  "Bearer correct-horse-battery-stapl"}) {
    EXPECT_EQ(Caller(wrong), "");
    EXPECT_EQ(last_.code(), absl::StatusCode::kUnauthenticated) << wrong;
    EXPECT_EQ(ReasonOf(last_), Reason::kUnauthenticated);
  }
  // Who is asking comes before what exists.
  EXPECT_EQ(ReasonOf(Get("jobs/none").status()), Reason::kUnauthenticated);
  const auto context = NewContext();
  const auto reader = jobs_->WatchJob(context.get(), {});
  v1::Event event;
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(ApiListenersTest, PlainTextToATlsPortFails) {
  UseTls();
  StartServer();
  Connect(server_->addresses().at(1), grpc::InsecureChannelCredentials());
  EXPECT_EQ(Caller(absl::StrCat("Bearer ", kToken)), "");
  EXPECT_EQ(last_.code(), absl::StatusCode::kUnavailable);
}

TEST_F(ApiListenersTest, PlainLoopbackIsThereWhenAskedFor) {
  tcp()->set_address("127.0.0.1:0");
  tcp()->set_insecure_loopback(true);
  StartServer();
  Connect(server_->addresses().at(1), grpc::InsecureChannelCredentials());
  EXPECT_EQ(Caller(), "loopback") << last_;
}

TEST_F(ApiListenersTest, APortInUseIsNamed) {
  tcp()->set_address("127.0.0.1:0");
  tcp()->set_insecure_loopback(true);
  StartServer();
  api::ApiOptions second = options_;
  second.config.set_listen_unix(folder_.File("second.sock"));
  second.config.mutable_listen_tcp()->set_address(server_->addresses().at(1));
  const auto status =
      api::ApiServer::Start(second, {controller_.get(), store_.get(), &hub_, nullptr, &clock_})
          .status();
  EXPECT_EQ(ReasonOf(status), Reason::kAddressInUse);
  EXPECT_THAT(std::string(status.message()), HasSubstr(server_->addresses().at(1)));
  EXPECT_FALSE(FileExists(folder_.File("second.sock"))) << "nothing is left behind";
}

TEST_F(ApiListenersTest, WrongTlsFilesAreNamed) {
  UseTls();
  MakeCertificate("other");
  tcp()->set_tls_key_file(folder_.File("other.key"));
  absl::Status status = TryStart();
  EXPECT_EQ(ReasonOf(status), Reason::kConfigInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr("other.key"));
  tcp()->set_tls_certificate_file(folder_.File("none.crt"));
  status = TryStart();
  EXPECT_EQ(ReasonOf(status), Reason::kConfigInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr("none.crt"));
}

TEST_F(ApiListenersTest, AnOpenTokenFileIsRefused) {
  UseTls();
  ASSERT_EQ(chmod(folder_.File("tokens").c_str(), 0640), 0);
  const absl::Status status = TryStart();
  EXPECT_EQ(ReasonOf(status), Reason::kConfigInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600"));
}

TEST_F(ApiListenersTest, ServerInfoSaysWhatTheDaemonIs) {
  StartServer();
  v1::ServerInfo info;
  const auto context = NewContext();
  ASSERT_TRUE(info_->GetServerInfo(context.get(), {}, &info).ok());
  EXPECT_EQ(info.version(), "1.2.3");
  EXPECT_EQ(info.state_dir(), folder_.path());
  EXPECT_THAT(info.allowed_roots(), ElementsAre(folder_.path()));
  EXPECT_THAT(info.addresses(), ElementsAre(absl::StrCat("unix:", options_.config.listen_unix())));
  EXPECT_EQ(info.metrics_address(), "127.0.0.1:9464");
  EXPECT_GT(info.start_time().seconds(), 0);
}

TEST_F(ApiListenersTest, CheckEnvironmentReportsEveryPart) {
  StartServer();
  v1::CheckEnvironmentResponse response;
  const auto context = NewContext();
  ASSERT_TRUE(info_->CheckEnvironment(context.get(), {}, &response).ok());
  std::vector<std::string> names;
  for (const auto& check : response.checks()) names.push_back(check.name());
  EXPECT_THAT(names, ElementsAre("worker_binary", "state_dir", "allowed_root", "devices"));
  EXPECT_EQ(response.checks(0).result(), v1::EnvironmentCheck::OK) << response.DebugString();
}

TEST_F(ApiListenersTest, NodesShowDevicesAndTheMachine) {
  StartServer();
  v1::ListNodesResponse response;
  auto context = NewContext();
  ASSERT_TRUE(nodes_->ListNodes(context.get(), {}, &response).ok());
  ASSERT_EQ(response.nodes_size(), 1);
  const v1::Node& node = response.nodes(0);
  EXPECT_EQ(node.name(), "nodes/local");
  EXPECT_GT(node.cpu_cores(), 0);
  ASSERT_EQ(node.devices_size(), 2);
  EXPECT_EQ(node.devices(1).id(), "cpu1");
  EXPECT_EQ(node.devices(1).type(), "cpu");
  EXPECT_EQ(node.devices(1).job(), "jobs/busy");
  EXPECT_GT(node.devices(1).memory_total_bytes(), node.devices(1).memory_used_bytes());
  EXPECT_GE(node.devices(1).utilization_ratio(), 0);
  EXPECT_LE(node.devices(1).utilization_ratio(), 1);

  v1::ListNodesRequest request;
  request.set_page_token("x");
  context = NewContext();
  EXPECT_EQ(ReasonOf(FromGrpcStatus(nodes_->ListNodes(context.get(), request, &response))),
            Reason::kBadPageToken);
}

TEST_F(ApiListenersTest, HealthAndReflectionAnswer) {
  StartServer();
  // `grpc.health.v1.Health/Check` with an empty request; SERVING is field 1 = 1.
  const auto call = [&](const std::string& method, const std::string& request) {
    grpc::GenericStub stub(channel_);
    const auto context = NewContext();
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const auto rpc =
        stub.PrepareUnaryCall(context.get(), method, grpc::ByteBuffer(&slice, 1), &queue);
    rpc->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    rpc->Finish(&response, &status, &queue);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(status.ok()) << method << status.error_message();
    grpc::Slice bytes;
    EXPECT_TRUE(response.TrySingleSlice(&bytes).ok());
    return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  };
  EXPECT_EQ(call("/grpc.health.v1.Health/Check", ""), "\x08\x01");
  // list_services is field 7, a string.
  EXPECT_THAT(call("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3A\x01*"),
              HasSubstr("traind.v1.JobService"));
}

TEST_F(ApiListenersTest, AfterAStopNothingAnswersAndTheNextStartWorks) {
  StartServer();
  StopServer();
  EXPECT_EQ(Caller(), "");
  EXPECT_EQ(last_.code(), absl::StatusCode::kUnavailable);
  const absl::Status again = TryStart();
  EXPECT_TRUE(again.ok()) << again;
}

}  // namespace
}  // namespace traind
