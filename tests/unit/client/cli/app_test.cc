#include "client/cli/app.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_streams.h"

namespace traind::client {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome Trainctl(std::vector<std::string> arguments) {
  TestStreams streams;
  AppEnvironment environment{streams.io, [](const char*) { return std::string(); }, nullptr};
  const int code = RunApp(std::move(arguments), environment);
  return {code, streams.out.str(), streams.err.str()};
}

TEST(AppTest, HelpAndVersionSucceedOnStdout) {
  const Outcome help = Trainctl({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("Exit codes:"));
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(Trainctl({"--version"}).out, ::testing::MatchesRegex("trainctl [0-9.]+\n"));
  EXPECT_THAT(Trainctl({"job", "watch", "--help"}).out, HasSubstr("--exit-status"));
}

TEST(AppTest, WrongUseIsExitCode2) {
  struct {
    std::vector<std::string> arguments;
    const char* message;
  } const kCases[] = {
      {{}, "subcommand is required"},
      {{"job"}, "subcommand is required"},
      {{"jbo", "list"}, "`jbo` is not a command; did you mean `job`?"},
      {{"job", "wach", "x"}, "`wach` is not a command; did you mean `watch`?"},
      {{"job", "zzzzzz"}, "there are: list, get, watch"},
      {{"job", "get"}, "job is required"},
      {{"job", "list", "--output", "xml"}, "xml not in {table,json,name}"},
      {{"job", "list", "--limit", "-1"}, "--limit"},
      {{"job", "list", "--label", "x"}, "must be KEY=VALUE; got `x`"},
      {{"job", "list", "--timeout", "soon"}, "must be a time such as 30s"},
      {{"job", "list", "--timeout", "-1s"}, "must be a time such as 30s"},
      {{"job", "list", "--nosuch"}, "--nosuch"},
      {{"completion", "tcsh"}, "tcsh not in {bash,zsh,fish}"},
  };
  for (const auto& test : kCases) {
    const Outcome outcome = Trainctl(test.arguments);
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(test.message));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(AppTest, ADaemonThatIsNotThereIsNamed) {
  const Outcome named = Trainctl({"job", "list", "--server", "unix:/no/such.sock"});
  EXPECT_EQ(named.code, 1);
  EXPECT_EQ(named.err,
            "error: cannot reach the daemon at unix:/no/such.sock: there is no such socket; start "
            "it with `traind`, or say where it is with --server\n");
}

TEST(AppTest, AWrongTokenFileIsTold) {
  EXPECT_EQ(Trainctl({"--token-file", "/no/such/token", "server", "info"}).code, 5);
}

TEST(AppTest, CompletionKnowsEveryCommandAndFlag) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const Outcome outcome = Trainctl({"completion", shell});
    EXPECT_EQ(outcome.code, 0);
    for (const char* word : {"submit", "cancel", "download", "exit-status", "dry-run", "server"}) {
      EXPECT_THAT(outcome.out, HasSubstr(word)) << shell;
    }
  }
}

}  // namespace
}  // namespace traind::client
