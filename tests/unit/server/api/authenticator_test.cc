#include "server/api/authenticator.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"

namespace traind::api {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kFirst[] = "0123456789abcdef";
constexpr char kSecond[] = "fedcba9876543210";

class AuthenticatorTest : public testing::Test {
 protected:
  std::string WriteTokens(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_.File("tokens");
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  Authenticator WithTokens(const std::string& text) {
    config::v1::TraindConfig config;
    config.mutable_listen_tcp()->set_token_file(WriteTokens(text));
    return Authenticator::Create(config, &peers_).value();
  }

  TempDir folder_;
  PeerRegistry peers_;
};

TEST_F(AuthenticatorTest, ReadsNamesAndSkipsComments) {
  const auto tokens = ReadTokenFile(
      WriteTokens(absl::StrCat("# who\n\n  ci:", kFirst, "  \r\nops-2:", kSecond, "\n")));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  ASSERT_EQ(tokens->size(), 2u);
  EXPECT_EQ((*tokens)[0].name, "ci");
  EXPECT_EQ((*tokens)[1].name, "ops-2");
}

TEST_F(AuthenticatorTest, WrongLinesAreNamedWithoutTheToken) {
  for (const std::string line : {"no-colon-in-this-line", "Name:0123456789abcdef", "a:short-token",
                                 "a:with space in the token", ":0123456789abcdef"}) {
    const auto tokens = ReadTokenFile(WriteTokens("# one\n" + line));
    EXPECT_EQ(ReasonOf(tokens.status()), Reason::kConfigInvalid) << line;
    EXPECT_THAT(std::string(tokens.status().message()), HasSubstr("tokens:2:"));
    EXPECT_THAT(std::string(tokens.status().message()), Not(HasSubstr("short-token")));
  }
}

TEST_F(AuthenticatorTest, AnEmptyOrMissingFileIsRefused) {
  EXPECT_THAT(std::string(ReadTokenFile(WriteTokens("# none\n")).status().message()),
              HasSubstr("no token"));
  EXPECT_EQ(ReasonOf(ReadTokenFile("/nowhere/tokens").status()), Reason::kConfigInvalid);
}

TEST_F(AuthenticatorTest, AFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0640, 0604, 0660}) {
    const auto tokens =
        ReadTokenFile(WriteTokens(absl::StrCat("ci:", kFirst), static_cast<mode_t>(mode)));
    EXPECT_THAT(std::string(tokens.status().message()), HasSubstr("chmod 600"));
  }
}

TEST_F(AuthenticatorTest, ATokenNamesItsCaller) {
  const Authenticator authenticator =
      WithTokens(absl::StrCat("ci:", kFirst, "\nops:", kSecond, "\n"));
  const std::string peer = "ipv4:10.0.0.1:5";
  EXPECT_EQ(authenticator.Identify(peer, absl::StrCat("Bearer ", kFirst)).value(), "token:ci");
  EXPECT_EQ(authenticator.Identify(peer, absl::StrCat("bearer ", kSecond)).value(), "token:ops");
}

TEST_F(AuthenticatorTest, AnythingElseIsUnauthenticated) {
  const Authenticator authenticator = WithTokens(absl::StrCat("ci:", kFirst));
  for (const std::string& authorization :
       {std::string(), std::string(kFirst), absl::StrCat("Bearer ", kSecond),
        absl::StrCat("Bearer ", kFirst, "0"), absl::StrCat("Basic ", kFirst), std::string("Bearer"),
        std::string(1 << 20, 'x')}) {
    const auto caller = authenticator.Identify("ipv4:10.0.0.1:5", authorization);
    EXPECT_EQ(caller.status().code(), absl::StatusCode::kUnauthenticated);
    EXPECT_EQ(ReasonOf(caller.status()), Reason::kUnauthenticated);
  }
}

TEST_F(AuthenticatorTest, TheUnixSocketNeedsNoToken) {
  const Authenticator authenticator = WithTokens(absl::StrCat("ci:", kFirst));
  const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int registered = peers_.Register(descriptor, 1234);
  EXPECT_EQ(authenticator.Identify(absl::StrCat("fd:", registered), "").value(), "user:1234");
  close(registered);
}

TEST_F(AuthenticatorTest, AConnectionNobodyRegisteredIsUnauthenticated) {
  const Authenticator authenticator = WithTokens(absl::StrCat("ci:", kFirst));
  EXPECT_FALSE(authenticator.Identify("fd:999", absl::StrCat("Bearer ", kFirst)).ok());
  EXPECT_FALSE(authenticator.Identify("fd:x", "").ok());
}

TEST_F(AuthenticatorTest, PlainTcpIsNamedLoopbackOnlyWhenSwitchedOn) {
  config::v1::TraindConfig config;
  EXPECT_FALSE(Authenticator::Create(config, &peers_)->Identify("ipv4:127.0.0.1:5", "").ok());
  config.mutable_listen_tcp()->set_insecure_loopback(true);
  EXPECT_EQ(Authenticator::Create(config, &peers_)->Identify("ipv4:127.0.0.1:5", "").value(),
            "loopback");
}

}  // namespace
}  // namespace traind::api
