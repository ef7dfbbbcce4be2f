#include "server/config/config.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"

namespace traind::config {
namespace {

using google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const HostDefaults kHost = {"/home/ada", "/opt/traind/bin", 8};

absl::StatusOr<v1::TraindConfig> Resolve(const std::string& text) {
  v1::TraindConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return ResolveConfig(config, kHost);
}

std::string Message(const std::string& text) {
  const auto config = Resolve(text);
  EXPECT_FALSE(config.ok()) << text;
  EXPECT_EQ(ReasonOf(config.status()), Reason::kConfigInvalid);
  return std::string(config.status().message());
}

TEST(ConfigTest, AnEmptyConfigurationGetsEveryDefault) {
  const v1::TraindConfig config = Resolve("").value();
  EXPECT_EQ(config.state_dir(), "/var/lib/traind");
  EXPECT_EQ(config.listen_unix(), "/run/traind/traind.sock");
  EXPECT_EQ(SocketMode(config), 0660u);
  EXPECT_FALSE(config.has_listen_tcp());
  EXPECT_EQ(config.metrics_address(), "127.0.0.1:9464");
  EXPECT_THAT(config.allowed_roots(), ElementsAre("/home/ada", "/srv", "/var/lib/traind"));
  EXPECT_EQ(config.cpu_slots(), 1);
  EXPECT_EQ(config.worker_binary(), "/opt/traind/bin/traind-worker");
  EXPECT_EQ(config.worker_threads(), 8);
  EXPECT_EQ(ToDuration(config.worker_lease()), absl::Seconds(30));
  EXPECT_EQ(ToDuration(config.worker_heartbeat()), absl::Seconds(5));
  EXPECT_EQ(ToDuration(config.cancel_grace()), absl::Seconds(10));
  EXPECT_EQ(config.max_queued_jobs(), 1000);
  EXPECT_EQ(LogLevelOf(config), LogLevel::kInfo);
}

TEST(ConfigTest, TheSampleFileIsTheDefaults) {
  const std::string sample = absl::StrCat(TRAIND_SOURCE_DIR, "/deploy/traind.conf");
  const auto loaded = LoadConfig(sample, kHost);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*loaded, Resolve("").value())) << PrintConfig(*loaded);
}

TEST(ConfigTest, TheSampleFileShowsEveryField) {
  const std::string text = ReadFile(absl::StrCat(TRAIND_SOURCE_DIR, "/deploy/traind.conf")).value();
  for (const auto* message : {v1::TraindConfig::descriptor(), v1::TcpListener::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) {
      EXPECT_THAT(text, HasSubstr(message->field(i)->name() + ":"));
    }
  }
}

TEST(ConfigTest, TheDocumentNamesEveryField) {
  const std::string text =
      ReadFile(absl::StrCat(TRAIND_SOURCE_DIR, "/docs/configuration.md")).value();
  for (const auto* message : {v1::TraindConfig::descriptor(), v1::TcpListener::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) {
      EXPECT_THAT(text, HasSubstr("| `" + message->field(i)->name() + "` |"));
    }
  }
}

TEST(ConfigTest, AnotherStateDirBringsItsOwnSocketAndRoot) {
  const v1::TraindConfig config = Resolve("state_dir: '/data/t'").value();
  EXPECT_EQ(config.listen_unix(), "/data/t/traind.sock");
  EXPECT_THAT(config.allowed_roots(), ElementsAre("/home/ada", "/srv", "/data/t"));
}

TEST(ConfigTest, ThreadsAreSharedByTheSlots) {
  EXPECT_EQ(Resolve("cpu_slots: 3").value().worker_threads(), 2);
  EXPECT_EQ(Resolve("cpu_slots: 100").value().worker_threads(), 1);
  EXPECT_EQ(Resolve("cpu_slots: 0").value().worker_threads(), 8);
}

TEST(ConfigTest, AShortLeaseBringsAShortHeartbeat) {
  const v1::TraindConfig config = Resolve("worker_lease { seconds: 3 }").value();
  EXPECT_EQ(ToDuration(config.worker_heartbeat()), absl::Milliseconds(500));
}

TEST(ConfigTest, AnEmptyMetricsAddressStaysEmpty) {
  EXPECT_EQ(Resolve("metrics_address: ''").value().metrics_address(), "");
}

TEST(ConfigTest, AHomeOfSlashIsNoRoot) {
  const v1::TraindConfig config = ResolveConfig({}, {"/", "/bin", 1}).value();
  EXPECT_THAT(config.allowed_roots(), ElementsAre("/srv", "/var/lib/traind"));
}

TEST(ConfigTest, WhatIsPrintedIsReadBack) {
  TempDir folder;
  const v1::TraindConfig config = Resolve("state_dir: '/data/t' cpu_slots: 4").value();
  ASSERT_TRUE(WriteFileAtomically(folder.File("c.conf"), PrintConfig(config)).ok());
  const auto loaded = LoadConfig(folder.File("c.conf"), {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*loaded, config));
}

TEST(ConfigTest, JsonIsReadByItsEnding) {
  TempDir folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("c.json"),
                                  R"({"state_dir": "/data/t", "worker_lease": "6s", "listen_tcp":
                      {"address": "127.0.0.1:1", "insecure_loopback": true}})")
                  .ok());
  const auto config = LoadConfig(folder.File("c.json"), kHost);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(ToDuration(config->worker_heartbeat()), absl::Seconds(1));
  EXPECT_TRUE(config->listen_tcp().insecure_loopback());
}

TEST(ConfigTest, UnknownFieldsAndSyntaxErrorsNameFileAndLine) {
  TempDir folder;
  const auto error = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomically(folder.File(name), text).ok());
    const auto config = LoadConfig(folder.File(name), kHost);
    EXPECT_EQ(ReasonOf(config.status()), Reason::kConfigInvalid) << name;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(folder.File(name)));
    return std::string(config.status().message());
  };
  EXPECT_THAT(error("unknown.conf", "state_dir: '/x'\nstat_dir: '/y'\n"), HasSubstr(":2:"));
  EXPECT_THAT(error("unknown2.conf", "stat_dir: '/y'\n"), HasSubstr("stat_dir"));
  EXPECT_THAT(error("type.conf", "cpu_slots: 'two'"), HasSubstr(":1:"));
  EXPECT_THAT(error("open.conf", "listen_tcp {"), HasSubstr(":1:"));
  EXPECT_THAT(error("twice.conf", "cpu_slots: 1\ncpu_slots: 2"), HasSubstr("cpu_slots"));
  EXPECT_THAT(error("unknown.json", R"({"stat_dir": "/y"})"), HasSubstr("stat_dir"));
  EXPECT_THAT(error("cut.json", R"({"state_dir": )"), HasSubstr("cut.json"));
  EXPECT_THAT(error("value.conf", "cpu_slots: -1"), HasSubstr("cpu_slots: -1"));
}

TEST(ConfigTest, AMissingFileIsNamed) {
  const auto config = LoadConfig("/nowhere/traind.conf", kHost);
  EXPECT_EQ(ReasonOf(config.status()), Reason::kConfigInvalid);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("/nowhere/traind.conf"));
}

struct WrongCase {
  const char* name;
  const char* text;
  const char* message;
};

class WrongConfigTest : public testing::TestWithParam<WrongCase> {};

TEST_P(WrongConfigTest, IsNamed) {
  EXPECT_THAT(Message(GetParam().text), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, WrongConfigTest,
    testing::Values(
        WrongCase{"state_dir", "state_dir: 'rel'", "state_dir: `rel` is not an absolute path"},
        WrongCase{"state_dir_nul", "state_dir: '/a\\000b'", "NUL"},
        WrongCase{"socket", "listen_unix: 'x.sock'", "listen_unix: `x.sock`"},
        WrongCase{"mode", "unix_socket_mode: '888'", "unix_socket_mode: `888`"},
        WrongCase{"mode_high", "unix_socket_mode: '4755'", "unix_socket_mode"},
        WrongCase{"metrics", "metrics_address: '9464'", "metrics_address: `9464` is not"},
        WrongCase{"metrics_port", "metrics_address: '[::1]:65536'", "metrics_address"},
        WrongCase{"root", "allowed_roots: '/a' allowed_roots: 'b'", "allowed_roots[1]: `b`"},
        WrongCase{"slots", "cpu_slots: 1025",
                  "cpu_slots: 1025 is out of range; allowed: 0 to 1024"},
        WrongCase{"threads", "worker_threads: 0", "worker_threads: 0"},
        WrongCase{"lease", "worker_lease { nanos: 5 }", "worker_lease: 5ns is out of range"},
        WrongCase{"heartbeat", "worker_heartbeat { seconds: 11 }",
                  "worker_heartbeat: 11s is out of range; allowed: 100ms to 10s"},
        WrongCase{"grace", "cancel_grace { seconds: -1 }", "cancel_grace: -1s"},
        WrongCase{"queue", "max_queued_jobs: 0", "max_queued_jobs: 0"},
        WrongCase{"level", "log_level: 'loud'", "log_level: `loud` is not one of debug"},
        WrongCase{"tcp_bare", "listen_tcp { address: '0.0.0.0:1' }",
                  "listen_tcp.tls_certificate_file: is needed"},
        WrongCase{"tcp_no_token",
                  "listen_tcp { address: '127.0.0.1:1' tls_certificate_file: '/c' "
                  "tls_key_file: '/k' }",
                  "listen_tcp.token_file: is needed"},
        WrongCase{"tcp_plain_public", "listen_tcp { address: '0.0.0.0:1' insecure_loopback: true }",
                  "can be reached from other machines"},
        WrongCase{"tcp_plain_name",
                  "listen_tcp { address: '127.evil.example:1' insecure_loopback: true }",
                  "can be reached from other machines"},
        WrongCase{"tcp_both",
                  "listen_tcp { address: '127.0.0.1:1' insecure_loopback: true token_file: '/t' }",
                  "choose one"},
        WrongCase{"tcp_address", "listen_tcp { address: '::1:7' insecure_loopback: true }",
                  "listen_tcp.address: `::1:7`"}),
    [](const auto& wrong) { return std::string(wrong.param.name); });

TEST(ConfigTest, AllWrongFieldsAreNamedAtOnce) {
  const std::string message = Message("state_dir: 'a' cpu_slots: -2 log_level: 'x'");
  EXPECT_THAT(message, HasSubstr("state_dir: "));
  EXPECT_THAT(message, HasSubstr("cpu_slots: "));
  EXPECT_THAT(message, HasSubstr("log_level: "));
}

TEST(ConfigTest, ASocketPathMustFitTheSystemsLimit) {
  EXPECT_TRUE(Resolve("listen_unix: '/" + std::string(106, 's') + "'").ok());
  EXPECT_THAT(Message("listen_unix: '/" + std::string(107, 's') + "'"), HasSubstr("108 bytes"));
}

TEST(HostPortTest, Parses) {
  EXPECT_EQ(ParseHostPort("localhost:80")->host, "localhost");
  EXPECT_EQ(ParseHostPort("[::1]:80")->host, "::1");
  EXPECT_EQ(ParseHostPort("[::1]:80")->port, 80);
  EXPECT_EQ(ParseHostPort("0.0.0.0:0")->port, 0);
  for (const char* wrong :
       {"", ":80", "host", "host:", "host:-1", "host:70000", "::1:80", "[host]:80", "host:80x"}) {
    EXPECT_FALSE(ParseHostPort(wrong).ok()) << wrong;
  }
}

TEST(HostPortTest, Loopback) {
  for (const char* host : {"localhost", "::1", "127.0.0.1", "127.9.9.9"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example", "127.1", "127.0.0.256",
                           "1127.0.0.1", "example"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
  }
}

TEST(ConfigTest, TheCurrentHostHasWhatDefaultsNeed) {
  const HostDefaults host = CurrentHost();
  EXPECT_GE(host.cores, 1);
  EXPECT_TRUE(absl::StartsWith(host.executable_dir, "/"));
}

}  // namespace
}  // namespace traind::config
