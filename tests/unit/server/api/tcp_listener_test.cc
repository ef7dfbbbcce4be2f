#include "server/api/tcp_listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"

namespace traind::api {
namespace {

using ::testing::HasSubstr;

// A port of the loopback interface that somebody listens on.
class TakenPort {
 public:
  TakenPort() : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(descriptor_, 1), 0);
    socklen_t size = sizeof(address);
    getsockname(descriptor_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;
  ~TakenPort() { close(descriptor_); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  int descriptor_;
  int port_ = 0;
};

TEST(CheckAddressIsFreeTest, ATakenPortIsNamed) {
  const TakenPort taken;
  const absl::Status status = CheckAddressIsFree(taken.address());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), Reason::kAddressInUse);
  EXPECT_EQ(MetadataOf(status, "address"), taken.address());
}

TEST(CheckAddressIsFreeTest, AFreePortIsOkTwice) {
  EXPECT_TRUE(CheckAddressIsFree("127.0.0.1:0").ok());
  EXPECT_TRUE(CheckAddressIsFree("127.0.0.1:0").ok());
}

TEST(CheckAddressIsFreeTest, AnAddressOfAnotherMachineIsAWrongSetting) {
  // No machine has this address: it is reserved for documentation (TEST-NET-1).
  const absl::Status status = CheckAddressIsFree("192.0.2.1:7443");
  EXPECT_EQ(ReasonOf(status), Reason::kConfigInvalid);
  EXPECT_THAT(std::string(status.message()), HasSubstr("192.0.2.1:7443"));
  EXPECT_EQ(ReasonOf(CheckAddressIsFree("no port")), Reason::kConfigInvalid);
}

class ServerCredentialsTest : public testing::Test {
 protected:
  void MakeCertificate(const std::string& name) {
    const std::string command = absl::StrCat(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=localhost -keyout ",
        folder_.File(name + ".key"), " -out ", folder_.File(name + ".crt"), " 2> ",
        folder_.File("openssl.log"));
    ASSERT_EQ(std::system(command.c_str()), 0)
        << ReadFile(folder_.File("openssl.log")).value_or("");
  }

  absl::Status Make(const std::string& certificate, const std::string& key) {
    config::v1::TcpListener listener;
    listener.set_tls_certificate_file(folder_.File(certificate));
    listener.set_tls_key_file(folder_.File(key));
    return MakeServerCredentials(listener).status();
  }

  TempDir folder_;
};

TEST_F(ServerCredentialsTest, ACertificateAndItsKeyAreRight) {
  MakeCertificate("a");
  EXPECT_TRUE(Make("a.crt", "a.key").ok());
}

TEST_F(ServerCredentialsTest, EveryWrongFileIsNamed) {
  MakeCertificate("a");
  MakeCertificate("b");
  ASSERT_TRUE(WriteFileAtomically(folder_.File("text"), "no certificate\n").ok());
  struct Case {
    const char* certificate;
    const char* key;
    const char* named;
  };
  for (const Case& wrong :
       {Case{"none", "a.key", "tls_certificate_file"},
        Case{"text", "a.key", "tls_certificate_file"}, Case{"a.crt", "none", "tls_key_file"},
        Case{"a.crt", "text", "tls_key_file"}, Case{"a.crt", "b.key", "does not belong to"}}) {
    const absl::Status status = Make(wrong.certificate, wrong.key);
    EXPECT_EQ(ReasonOf(status), Reason::kConfigInvalid) << wrong.certificate << wrong.key;
    EXPECT_THAT(std::string(status.message()), HasSubstr(wrong.named));
  }
}

TEST_F(ServerCredentialsTest, PlainLoopbackNeedsNoFile) {
  config::v1::TcpListener listener;
  listener.set_insecure_loopback(true);
  EXPECT_TRUE(MakeServerCredentials(listener).ok());
}

}  // namespace
}  // namespace traind::api
