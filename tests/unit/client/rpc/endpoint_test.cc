#include "client/rpc/endpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace traind::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

EndpointLookup Lookup(std::string server, std::map<std::string, std::string> environment = {},
                      std::set<std::string> files = {}) {
  return {std::move(server), false,
          [environment](const char* name) {
            const auto found = environment.find(name);
            return found == environment.end() ? "" : found->second;
          },
          [files](const std::string& path) { return files.count(path) == 1; }};
}

TEST(EndpointTest, TheFlagWinsOverTheEnvironment) {
  EXPECT_EQ(FindEndpoint(Lookup("unix:/a", {{"TRAIND_SERVER", "unix:/b"}}))->target, "unix:/a");
  EXPECT_EQ(FindEndpoint(Lookup("", {{"TRAIND_SERVER", "unix:/b"}}))->target, "unix:/b");
  EXPECT_EQ(FindEndpoint(Lookup("unix:///c"))->target, "unix:/c");
  EXPECT_EQ(FindEndpoint(Lookup("/d"))->target, "unix:/d");
}

TEST(EndpointTest, TheFirstSocketThatExistsIsTaken) {
  const std::map<std::string, std::string> environment = {{"XDG_RUNTIME_DIR", "/run/user/7"},
                                                          {"HOME", "/home/u"}};
  const auto found = FindEndpoint(Lookup(
      "", environment, {"/home/u/.local/state/traind/traind.sock", "/var/lib/traind/traind.sock"}));
  EXPECT_EQ(found->target, "unix:/home/u/.local/state/traind/traind.sock");
  EXPECT_THAT(found->sockets, ElementsAre());
  const auto none = FindEndpoint(Lookup("", environment));
  EXPECT_EQ(none->target, "unix:/run/user/7/traind/traind.sock");
  EXPECT_THAT(
      none->sockets,
      ElementsAre("/run/user/7/traind/traind.sock", "/run/traind/traind.sock",
                  "/home/u/.local/state/traind/traind.sock", "/var/lib/traind/traind.sock"));
}

TEST(EndpointTest, TcpIsPlainOnLoopbackOnly) {
  EXPECT_FALSE(FindEndpoint(Lookup("127.0.0.1:7443"))->tls);
  EXPECT_FALSE(FindEndpoint(Lookup("[::1]:7443"))->tls);
  EXPECT_TRUE(FindEndpoint(Lookup("127.example.org:7443"))->tls);
  EXPECT_TRUE(FindEndpoint(Lookup("train.example.org:7443"))->tls);
  EndpointLookup with_ca = Lookup("localhost:7443");
  with_ca.has_ca = true;
  EXPECT_TRUE(FindEndpoint(with_ca)->tls);
}

TEST(EndpointTest, WrongAddressesAreRefused) {
  for (const char* address :
       {"unix:", "host", "host:", "host:port", "host:0", "host:70000", ":1"}) {
    const auto endpoint = FindEndpoint(Lookup(address));
    EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
  EXPECT_THAT(
      std::string(FindEndpoint(Lookup("unix:/" + std::string(200, 'x'))).status().message()),
      HasSubstr("more than 107 bytes"));
}

}  // namespace
}  // namespace traind::client
