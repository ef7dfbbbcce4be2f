// Command lines to options, apart from running.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "client/cmd/checkpoint/download.h"
#include "client/cmd/checkpoint/list.h"
#include "client/cmd/job/cancel.h"
#include "client/cmd/job/delete.h"
#include "client/cmd/job/list.h"
#include "client/cmd/job/logs.h"
#include "client/cmd/job/wait.h"
#include "client/cmd/job/watch.h"
#include "client/cmd/submit.h"
#include "tests/support/fake_client.h"
#include "tests/support/test_streams.h"

namespace traind::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The options that a run function gets for `arguments`.
template <typename Options>
Options Parse(void (*add)(CLI::App*, Command*, RunFunction<Options>),
              std::vector<std::string> arguments) {
  Options seen;
  CLI::App app;
  Command selected;
  add(&app, &selected, [&seen](const Options& options, IoStreams&, Client&) {
    seen = options;
    return ExitCode::kOk;
  });
  std::reverse(arguments.begin(), arguments.end());
  app.parse(arguments);
  TestStreams streams;
  FakeClient client;
  CommonOptions common;
  common.output = OutputFormat::kJson;
  EXPECT_EQ(selected(common, streams.io, client).value(), ExitCode::kOk);
  EXPECT_EQ(seen.common.output, OutputFormat::kJson);
  return seen;
}

TEST(ParsingTest, Submit) {
  const SubmitOptions plain = Parse(AddSubmit, {"submit", "job.json"});
  EXPECT_EQ(plain.file, "job.json");
  EXPECT_FALSE(plain.watch);
  EXPECT_FALSE(plain.dry_run);
  EXPECT_FALSE(plain.priority.has_value());
  EXPECT_THAT(plain.labels, IsEmpty());
  const SubmitOptions full = Parse(
      AddSubmit, {"submit", "-w", "--dry-run", "--job-id", "run", "--name", "My run", "--priority",
                  "0", "--label", "a=b", "--label", "c=d=e", "-", "--request-id", "7f"});
  EXPECT_EQ(full.file, "-");
  EXPECT_TRUE(full.watch);
  EXPECT_TRUE(full.dry_run);
  EXPECT_EQ(full.job_id, "run");
  EXPECT_EQ(full.display_name, "My run");
  EXPECT_EQ(full.priority, 0);
  EXPECT_THAT(full.labels, ElementsAre("a=b", "c=d=e"));
  EXPECT_EQ(full.request_id, "7f");
}

TEST(ParsingTest, JobList) {
  EXPECT_EQ(Parse(AddJobList, {"list"}).limit, 50);
  const JobListOptions options = Parse(AddJobList, {"list", "--state", "running", "--state",
                                                    "FAILED", "--label", "a=b", "--limit", "0"});
  EXPECT_THAT(options.states, ElementsAre("running", "FAILED"));
  EXPECT_THAT(options.labels, ElementsAre("a=b"));
  EXPECT_EQ(options.limit, 0);
}

TEST(ParsingTest, JobWatch) {
  const JobWatchOptions plain = Parse(AddJobWatch, {"watch", "run"});
  EXPECT_EQ(plain.job, "run");
  EXPECT_EQ(plain.after_sequence, 0);
  EXPECT_FALSE(plain.exit_status);
  const JobWatchOptions full =
      Parse(AddJobWatch, {"watch", "run", "--after", "7", "--exit-status"});
  EXPECT_EQ(full.after_sequence, 7);
  EXPECT_TRUE(full.exit_status);
}

TEST(ParsingTest, JobLogs) {
  const JobLogsOptions options =
      Parse(AddJobLogs, {"logs", "run", "-f", "--attempt", "2", "--offset", "10"});
  EXPECT_EQ(options.job, "run");
  EXPECT_TRUE(options.follow);
  EXPECT_EQ(options.attempt, 2);
  EXPECT_EQ(options.offset, 10);
}

TEST(ParsingTest, ManyJobs) {
  EXPECT_THAT(Parse(AddJobWait, {"wait", "a", "b"}).jobs, ElementsAre("a", "b"));
  EXPECT_THAT(Parse(AddJobCancel, {"cancel", "a", "b"}).jobs, ElementsAre("a", "b"));
  EXPECT_EQ(Parse(AddJobDelete, {"delete", "a", "--etag", "\"r1\""}).etag, "\"r1\"");
}

TEST(ParsingTest, Checkpoints) {
  EXPECT_EQ(Parse(AddCheckpointList, {"list", "run"}).job, "run");
  const CheckpointDownloadOptions options =
      Parse(AddCheckpointDownload, {"download", "run/25", "--to", "/tmp/x"});
  EXPECT_EQ(options.checkpoint, "run/25");
  EXPECT_EQ(options.to, "/tmp/x");
}

}  // namespace
}  // namespace traind::client
