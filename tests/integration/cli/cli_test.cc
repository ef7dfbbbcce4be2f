// The real trainctl against a fake daemon over a Unix socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/os/file.h"
#include "common/os/subprocess.h"
#include "tests/support/fake_traind_server.h"
#include "tests/support/job_events.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// SHA-256 of `hello`, by sha256sum.
constexpr char kHello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

class CliTest : public ::testing::Test {
 protected:
  struct Outcome {
    int code;
    std::string output;  // stdout and stderr.
  };

  void StartServer(FakeTraindData data) {
    server_ = std::make_unique<FakeTraindServer>(dir_.File("s"), std::move(data));
  }

  absl::StatusOr<Subprocess> Start(std::vector<std::string> arguments) {
    SubprocessOptions options;
    options.argv = {TRAIND_BIN_DIR "/trainctl", "--server", "unix:" + dir_.File("s")};
    options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
    options.output_path = dir_.File("output");
    options.working_directory = dir_.path();
    return Subprocess::Start(options);
  }

  std::string Output() { return ReadFile(dir_.File("output")).value_or(""); }

  Outcome Finish(Subprocess& process) {
    const auto exit = process.Wait(absl::Seconds(60));
    EXPECT_TRUE(exit.has_value()) << "trainctl hangs";
    return {exit ? exit->value : -1, Output()};
  }

  Outcome Run(std::vector<std::string> arguments) {
    EXPECT_TRUE(RemoveAll(dir_.File("output")).ok());
    auto process = Start(std::move(arguments));
    EXPECT_TRUE(process.ok()) << process.status();
    return Finish(*process);
  }

  void WriteJob(const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(dir_.File("job.json"), text).ok());
  }

  TempDir dir_;
  std::unique_ptr<FakeTraindServer> server_;
};

FakeTraindData OneRun(int64_t steps) {
  FakeTraindData data;
  data.jobs["jobs/run"] = SucceededJob("jobs/run");
  data.events["jobs/run"] = EventsOfARun(steps);
  return data;
}

TEST_F(CliTest, SubmitSendsAbsolutePathsAndARequestId) {
  StartServer({});
  WriteJob(R"({"base_model": {"path": "m.gguf"}, "dataset": {"train": [{"path": "d/t.jsonl"}]}})");
  const Outcome outcome = Run({"submit", "job.json", "--job-id", "run"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "jobs/run  QUEUED\n");
  const auto creates = server_->creates();
  ASSERT_EQ(creates.size(), 1u);
  EXPECT_THAT(creates[0].job().spec().base_model().path(), ::testing::EndsWith("/m.gguf"));
  EXPECT_THAT(creates[0].job().spec().base_model().path(), ::testing::StartsWith("/"));
  EXPECT_EQ(creates[0].request_id().size(), 36u);
}

TEST_F(CliTest, SubmitShowsWrongFieldsOfTheDaemonAsTheFileHasThem) {
  FakeTraindData data;
  data.create_error = FieldErrors({{"job.spec.lora.r", "must be at least 1; got 0"}});
  StartServer(std::move(data));
  WriteJob(R"({"lora": {"r": 0}})");
  const Outcome outcome = Run({"submit", "job.json"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.output,
            "error: job.json has a wrong field\n"
            "  lora.r: must be at least 1; got 0\n"
            "reason: INVALID_FIELD\n");
}

TEST_F(CliTest, AWatchOverBrokenConnectionsHasNoGapsAndNoRepeats) {
  FakeTraindData data = OneRun(20);
  data.broken_watches = {3, 0, 7};
  const size_t count = data.events["jobs/run"].size();
  StartServer(std::move(data));
  const Outcome outcome = Run({"job", "watch", "run", "--output", "json"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  std::vector<int64_t> sequences;
  for (absl::string_view line : absl::StrSplit(outcome.output, '\n')) {
    const size_t at = line.find("{\"sequence\":\"");
    if (at != 0) continue;
    int64_t sequence = 0;
    const absl::string_view number = line.substr(13, line.find('"', 13) - 13);
    ASSERT_TRUE(absl::SimpleAtoi(number, &sequence)) << line;
    sequences.push_back(sequence);
  }
  std::vector<int64_t> expected(count);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(sequences, expected);
  EXPECT_THAT(server_->watches(), ElementsAre(0, 3, 3, 10));
  EXPECT_THAT(outcome.output, HasSubstr("connection lost"));
}

TEST_F(CliTest, SubmitWatchEndsWithTheSummary) {
  StartServer(OneRun(3));
  WriteJob("{}");
  const Outcome outcome = Run({"submit", "job.json", "--job-id", "run", "--watch"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("step 3/3"));
  EXPECT_THAT(outcome.output, HasSubstr("eval loss    3.85 → 2.78 (-27.8 %)"));
}

TEST_F(CliTest, CtrlCStopsWatchingAndNotTheJob) {
  FakeTraindData data = OneRun(3);
  data.jobs["jobs/run"].set_state(v1::Job::RUNNING);
  data.events_end = false;
  StartServer(std::move(data));
  auto process = Start({"job", "watch", "run"});
  ASSERT_TRUE(process.ok()) << process.status();
  ASSERT_TRUE(WaitUntil([&] { return absl::StrContains(Output(), "step 3/3"); })) << Output();
  ASSERT_TRUE(process->Signal(SIGINT).ok());
  const Outcome outcome = Finish(*process);
  EXPECT_EQ(outcome.code, 3) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("Stopped watching; jobs/run goes on."));
}

TEST_F(CliTest, WaitTellsByItsExitCode) {
  FakeTraindData data;
  for (const auto& [id, state] : std::map<std::string, v1::Job::State>{{"good", v1::Job::SUCCEEDED},
                                                                       {"bad", v1::Job::FAILED},
                                                                       {"off", v1::Job::CANCELLED},
                                                                       {"on", v1::Job::RUNNING}}) {
    v1::Job job;
    job.set_name("jobs/" + id);
    job.set_state(state);
    data.jobs[job.name()] = job;
  }
  StartServer(std::move(data));
  EXPECT_EQ(Run({"job", "wait", "good"}).code, 0);
  EXPECT_EQ(Run({"job", "wait", "bad"}).code, 9);
  EXPECT_EQ(Run({"job", "wait", "off"}).code, 3);
  EXPECT_EQ(Run({"job", "wait", "on", "--timeout", "0.2s"}).code, 8);
  EXPECT_EQ(Run({"job", "wait", "none"}).code, 5);
}

TEST_F(CliTest, CancelPrintsTheState) {
  StartServer(OneRun(1));
  EXPECT_EQ(Run({"job", "cancel", "run"}).output, "jobs/run  CANCELLING\n");
  const Outcome missing = Run({"job", "cancel", "none"});
  EXPECT_EQ(missing.code, 5);
  EXPECT_THAT(missing.output, HasSubstr("reason: JOB_NOT_FOUND"));
}

TEST_F(CliTest, ADownloadWithAWrongHashIsRefused) {
  FakeTraindData data;
  data.checkpoint.set_name("jobs/run/checkpoints/adapter");
  v1::CheckpointFile* file = data.checkpoint.add_files();
  file->set_path("adapter_model.safetensors");
  file->set_size_bytes(5);
  file->set_sha256(kHello);
  data.file_contents = {"hallo"};
  const FakeTraindData good = [&] {
    FakeTraindData copy = data;
    copy.file_contents = {"hello"};
    return copy;
  }();
  StartServer(std::move(data));
  const Outcome refused = Run({"checkpoint", "download", "run", "--to", "adapter"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.output, HasSubstr("reason: CHECKPOINT_CORRUPT"));
  EXPECT_FALSE(FileExists(dir_.File("adapter")));
  server_.reset();
  StartServer(good);
  EXPECT_EQ(Run({"checkpoint", "download", "run", "--to", "adapter"}).code, 0);
  EXPECT_EQ(ReadFile(dir_.File("adapter/adapter_model.safetensors")).value(), "hello");
}

TEST_F(CliTest, AnUnknownServerIsNamed) {
  const Outcome outcome = Run({"server", "info"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("there is no such socket"));
}

TEST_F(CliTest, ASocketWithoutADaemonIsTold) {
  StartServer({});
  server_.reset();
  const Outcome outcome = Run({"server", "info"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.output, HasSubstr("cannot reach the daemon at unix:"));
}

TEST_F(CliTest, TheTokenIsSent) {
  StartServer({});
  ASSERT_TRUE(WriteFileAtomically(dir_.File("token"), "secret-1\n").ok());
  EXPECT_THAT(Run({"server", "info", "--token-file", "token"}).output,
              HasSubstr("you are  Bearer secret-1\n"));
}

}  // namespace
}  // namespace traind
