// What commands print and return, with a fake client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cmd/checkpoint/list.h"
#include "client/cmd/job/cancel.h"
#include "client/cmd/job/delete.h"
#include "client/cmd/job/get.h"
#include "client/cmd/job/list.h"
#include "client/cmd/job/logs.h"
#include "client/cmd/job/wait.h"
#include "client/cmd/job/watch.h"
#include "client/cmd/node/list.h"
#include "client/cmd/server/check.h"
#include "client/cmd/server/info.h"
#include "client/cmd/submit.h"
#include "common/status/errors.h"
#include "tests/support/fake_client.h"
#include "tests/support/job_events.h"
#include "tests/support/test_streams.h"

namespace traind::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

v1::Job JobIn(const std::string& name, v1::Job::State state) {
  v1::Job job;
  job.set_name(name);
  job.set_state(state);
  return job;
}

class CommandsTest : public ::testing::Test {
 protected:
  FakeClient client_;
  TestStreams streams_;
};

TEST_F(CommandsTest, JobListIsATable) {
  client_.jobs["jobs/a"] = {SucceededJob("jobs/a")};
  v1::Job queued = JobIn("jobs/b", v1::Job::QUEUED);
  queued.mutable_create_time()->set_seconds(1'799'999'990);
  queued.set_pending_reason("waits for 1 cpu device; 1 of 1 busy");
  client_.jobs["jobs/b"] = {queued};
  EXPECT_EQ(RunJobList({}, streams_.io, client_).value(), ExitCode::kOk);
  EXPECT_EQ(streams_.out.str(),
            "NAME    STATE      STEP  LOSS  EVAL LOSS  LEFT  AGE     TITLE\n"
            "jobs/a  SUCCEEDED  3/3   2.5   2.78       -     16m40s  -\n"
            "jobs/b  QUEUED     -     -     -          -     10s     waits for 1 cpu device; 1 of "
            "1 busy\n");
}

TEST_F(CommandsTest, JobListFollowsPagesUpToTheLimit) {
  client_.page_limit = 2;
  for (const char* name : {"jobs/a", "jobs/b", "jobs/c", "jobs/d", "jobs/e"}) {
    client_.jobs[name] = {JobIn(name, v1::Job::RUNNING)};
  }
  JobListOptions options;
  options.common.output = OutputFormat::kName;
  options.limit = 3;
  EXPECT_TRUE(RunJobList(options, streams_.io, client_).ok());
  EXPECT_EQ(streams_.out.str(), "jobs/a\njobs/b\njobs/c\n");
  EXPECT_THAT(streams_.err.str(), HasSubstr("--limit 0 shows all"));
  streams_.out.str("");
  options.limit = 0;
  EXPECT_TRUE(RunJobList(options, streams_.io, client_).ok());
  EXPECT_EQ(streams_.out.str(), "jobs/a\njobs/b\njobs/c\njobs/d\njobs/e\n");
}

TEST_F(CommandsTest, JobListSendsFiltersAndRefusesAWrongState) {
  JobListOptions options;
  options.states = {"running"};
  options.labels = {"team=nlp"};
  EXPECT_TRUE(RunJobList(options, streams_.io, client_).ok());
  EXPECT_THAT(client_.list_requests[0].states(), ElementsAre(v1::Job::RUNNING));
  EXPECT_EQ(client_.list_requests[0].labels().at("team"), "nlp");
  EXPECT_EQ(streams_.err.str(), "No jobs.\n");
  options.states = {"runing"};
  EXPECT_THAT(std::string(RunJobList(options, streams_.io, client_).status().message()),
              HasSubstr("must be one of QUEUED, STARTING"));
}

TEST_F(CommandsTest, JobGetAsLinesAndAsJson) {
  v1::Job job = SucceededJob("jobs/a");
  job.set_priority(50);
  (*job.mutable_labels())["team"] = "nlp";
  client_.jobs["jobs/a"] = {job};
  JobGetOptions options;
  options.job = "a";
  EXPECT_TRUE(RunJobGet(options, streams_.io, client_).ok());
  EXPECT_EQ(streams_.out.str(),
            "name       jobs/a\n"
            "state      SUCCEEDED\n"
            "step       3 of 3, epoch 0.00\n"
            "loss       2.5\n"
            "eval loss  2.78\n"
            "priority   50\n"
            "labels     team=nlp\n"
            "created    2027-01-15T07:43:20Z, 16m40s ago\n"
            "ended      2027-01-15T07:45:51Z\n"
            "adapter    /var/lib/traind/jobs/run/adapter\n");
  streams_.out.str("");
  options.common.output = OutputFormat::kJson;
  EXPECT_TRUE(RunJobGet(options, streams_.io, client_).ok());
  EXPECT_THAT(streams_.out.str(), HasSubstr("\"adapter_path\": \"/var/lib"));
  EXPECT_THAT(streams_.out.str(), HasSubstr("\"state\": \"SUCCEEDED\""));
}

TEST_F(CommandsTest, WaitTellsHowJobsEnded) {
  client_.jobs["jobs/good"] = {JobIn("jobs/good", v1::Job::RUNNING),
                               JobIn("jobs/good", v1::Job::SUCCEEDED)};
  client_.jobs["jobs/bad"] = {JobIn("jobs/bad", v1::Job::FAILED)};
  client_.jobs["jobs/off"] = {JobIn("jobs/off", v1::Job::CANCELLED)};
  client_.jobs["jobs/on"] = {JobIn("jobs/on", v1::Job::RUNNING)};
  const auto wait = [&](std::vector<std::string> jobs) {
    JobWaitOptions options;
    options.common.timeout = absl::Seconds(3);
    options.jobs = std::move(jobs);
    return RunJobWait(options, streams_.io, client_);
  };
  EXPECT_EQ(wait({"good"}).value(), ExitCode::kOk);
  EXPECT_EQ(wait({"bad"}).value(), ExitCode::kJobFailed);
  EXPECT_EQ(wait({"off"}).value(), ExitCode::kCancelled);
  EXPECT_EQ(wait({"bad", "off", "good"}).value(), ExitCode::kJobFailed);
  const absl::Time start = client_.now;
  EXPECT_EQ(wait({"on"}).value(), ExitCode::kPending);
  EXPECT_EQ(client_.now - start, absl::Seconds(3));
  EXPECT_EQ(wait({"none"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CommandsTest, WaitBearsARestartOfTheDaemon) {
  client_.jobs["jobs/a"] = {JobIn("jobs/a", v1::Job::RUNNING), JobIn("jobs/a", v1::Job::SUCCEEDED)};
  client_.get_errors = {absl::OkStatus(), absl::UnavailableError("gone"),
                        absl::UnavailableError("gone")};
  JobWaitOptions options;
  options.jobs = {"a"};
  EXPECT_EQ(RunJobWait(options, streams_.io, client_).value(), ExitCode::kOk);
}

TEST_F(CommandsTest, WatchReconnectsAndEndsWithTheSummary) {
  client_.jobs["jobs/run"] = {SucceededJob("jobs/run")};
  std::vector<v1::Event> events = EventsOfARun(3);
  const std::vector<v1::Event> first(events.begin(), events.begin() + 8);
  std::vector<v1::Event> second(events.begin() + 8, events.end());
  second.push_back(EndEvent(v1::StreamEnd::JOB_ENDED));
  client_.watch = {{first, absl::UnavailableError("reset")}, {second, absl::OkStatus()}};
  JobWatchOptions options;
  options.job = "run";
  EXPECT_EQ(RunJobWatch(options, streams_.io, client_).value(), ExitCode::kOk);
  for (const char* step : {"step 1/3", "step 2/3", "step 3/3"}) {
    const size_t found = streams_.out.str().find(step);
    ASSERT_NE(found, std::string::npos) << streams_.out.str();
    EXPECT_EQ(streams_.out.str().find(step, found + 1), std::string::npos);
  }
  EXPECT_THAT(streams_.out.str(), HasSubstr("jobs/run  SUCCEEDED after 2m31s\n"));
  EXPECT_EQ(streams_.err.str(),
            "connection lost (reset); trying again …\nconnected again; nothing was missed\n");
}

TEST_F(CommandsTest, WatchAsJsonIsOneEventALine) {
  client_.jobs["jobs/run"] = {SucceededJob("jobs/run")};
  std::vector<v1::Event> events = EventsOfARun(1);
  events.push_back(EndEvent(v1::StreamEnd::JOB_ENDED));
  client_.watch = {{events, absl::OkStatus()}};
  JobWatchOptions options;
  options.job = "run";
  options.common.output = OutputFormat::kJson;
  EXPECT_TRUE(RunJobWatch(options, streams_.io, client_).ok());
  const std::string text = streams_.out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<std::ptrdiff_t>(events.size()) - 1);
  EXPECT_THAT(text, HasSubstr("{\"sequence\":\"4\",\"plan\":{"));
}

TEST_F(CommandsTest, AnInterruptedWatchSaysHowToComeBack) {
  client_.jobs["jobs/run"] = {JobIn("jobs/run", v1::Job::RUNNING)};
  client_.watch = {{EventsOfARun(1), absl::CancelledError("interrupted")}};
  JobWatchOptions options;
  options.job = "run";
  EXPECT_EQ(RunJobWatch(options, streams_.io, client_).value(), ExitCode::kCancelled);
  EXPECT_THAT(streams_.err.str(), HasSubstr("jobs/run goes on"));
  EXPECT_THAT(streams_.err.str(), HasSubstr("trainctl job watch jobs/run"));
}

TEST_F(CommandsTest, WatchMayTellTheOutcome) {
  client_.jobs["jobs/run"] = {JobIn("jobs/run", v1::Job::FAILED)};
  client_.watch = {{{EndEvent(v1::StreamEnd::JOB_ENDED)}, absl::OkStatus()},
                   {{EndEvent(v1::StreamEnd::JOB_ENDED)}, absl::OkStatus()}};
  JobWatchOptions options;
  options.job = "run";
  EXPECT_EQ(RunJobWatch(options, streams_.io, client_).value(), ExitCode::kOk);
  options.exit_status = true;
  EXPECT_EQ(RunJobWatch(options, streams_.io, client_).value(), ExitCode::kJobFailed);
}

TEST_F(CommandsTest, LogsGoOnInTheSameAttempt) {
  v1::LogChunk one, two;
  one.set_data("line 1\n");
  one.set_next_offset(7);
  one.set_attempt(3);
  two.set_data("line 2\n");
  client_.logs = {{{one}, absl::UnavailableError("reset")}, {{two}, absl::OkStatus()}};
  JobLogsOptions options;
  options.job = "a";
  options.follow = true;
  EXPECT_EQ(RunJobLogs(options, streams_.io, client_).value(), ExitCode::kOk);
  EXPECT_EQ(streams_.out.str(), "line 1\nline 2\n");
  EXPECT_EQ(client_.log_requests[1].offset(), 7);
  EXPECT_EQ(client_.log_requests[1].attempt(), 3);
}

TEST_F(CommandsTest, CancelAndDelete) {
  client_.jobs["jobs/a"] = {JobIn("jobs/a", v1::Job::RUNNING)};
  JobCancelOptions cancel;
  cancel.jobs = {"a"};
  EXPECT_TRUE(RunJobCancel(cancel, streams_.io, client_).ok());
  JobDeleteOptions remove;
  remove.jobs = {"jobs/a"};
  remove.etag = "\"r1\"";
  EXPECT_TRUE(RunJobDelete(remove, streams_.io, client_).ok());
  EXPECT_EQ(streams_.out.str(), "jobs/a  CANCELLING\njobs/a  deleted\n");
  EXPECT_EQ(client_.delete_requests[0].etag(), "\"r1\"");
  EXPECT_EQ(ReasonOf(RunJobDelete(remove, streams_.io, client_).status()), Reason::kJobNotFound);
}

class SubmitTest : public CommandsTest {
 protected:
  absl::StatusOr<ExitCode> Submit(const std::string& text, SubmitOptions options = {}) {
    options.file = "-";
    streams_.in.str(text);
    return RunSubmit(options, streams_.io, client_);
  }
};

TEST_F(SubmitTest, SendsTheJobWithTheFlagsAndARequestId) {
  SubmitOptions options;
  options.job_id = "run";
  options.priority = 7;
  options.labels = {"team=nlp"};
  options.display_name = "A run";
  EXPECT_TRUE(Submit(R"({"priority": 1, "base_model": {"path": "/m"}})", options).ok());
  EXPECT_EQ(streams_.out.str(), "jobs/run  QUEUED\n");
  const v1::CreateJobRequest& request = client_.create_requests[0];
  EXPECT_EQ(request.job().priority(), 7);
  EXPECT_EQ(request.job().labels().at("team"), "nlp");
  EXPECT_EQ(request.job().display_name(), "A run");
  EXPECT_EQ(request.job().spec().base_model().path(), "/m");
  EXPECT_THAT(request.request_id(),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_TRUE(Submit("{}").ok());
  EXPECT_NE(client_.create_requests[1].request_id(), request.request_id());
}

TEST_F(SubmitTest, TheNameOfAPrintedJobIsItsId) {
  EXPECT_TRUE(Submit(R"({"name": "jobs/again", "spec": {}})").ok());
  EXPECT_EQ(client_.create_requests[0].job_id(), "again");
  EXPECT_EQ(client_.create_requests[0].job().name(), "");
}

TEST_F(SubmitTest, ADryRunPrintsTheJob) {
  SubmitOptions options;
  options.dry_run = true;
  EXPECT_TRUE(Submit(R"({"base_model": {"path": "/m"}})", options).ok());
  EXPECT_TRUE(client_.create_requests[0].validate_only());
  EXPECT_THAT(streams_.out.str(), HasSubstr("\"path\": \"/m\""));
}

TEST_F(SubmitTest, ErrorsOfTheDaemonPointIntoTheFile) {
  client_.create_error = FieldErrors({{"job.spec.lora.r", "must be at least 1; got 0"},
                                      {"job.spec.base_model.dtype", "must be auto or float32"},
                                      {"job.priority", "must be at most 100"},
                                      {"job_id", "must match [a-z]"}});
  SubmitOptions options;
  options.priority = 101;
  options.job_id = "X";
  const auto result =
      Submit(R"({"lora": {"r": 0}, "base_model": {"torch_dtype": "int3"}})", options);
  std::vector<std::string> fields;
  for (const auto& violation : FieldViolationsOf(result.status()))
    fields.push_back(violation.field);
  EXPECT_THAT(fields, ElementsAre("lora.r", "base_model.torch_dtype", "--priority", "--job-id"));
  EXPECT_EQ(result.status().message(), "stdin has 4 wrong fields");
  EXPECT_EQ(ReasonOf(result.status()), Reason::kInvalidField);
}

TEST_F(SubmitTest, AMissingFileIsNamedByItsField) {
  client_.create_error = Error(absl::StatusCode::kNotFound, Reason::kModelNotFound,
                               "job.spec.base_model.path: cannot find /m: No such file", {});
  const absl::Status status = Submit(R"({"base_model": {"path": "/m"}})").status();
  EXPECT_EQ(status.message(), "base_model.path: cannot find /m: No such file");
  EXPECT_EQ(ReasonOf(status), Reason::kModelNotFound);
}

TEST_F(SubmitTest, AWrongFileIsToldBeforeTheDaemonIsAsked) {
  EXPECT_FALSE(Submit(R"({"training": {"learning_rate": "fast"}})").ok());
  EXPECT_TRUE(client_.create_requests.empty());
}

TEST_F(SubmitTest, WatchFailsIfTheJobFails) {
  client_.watch = {{{EndEvent(v1::StreamEnd::JOB_ENDED)}, absl::OkStatus()}};
  client_.jobs["jobs/run"] = {JobIn("jobs/run", v1::Job::FAILED)};
  SubmitOptions options;
  options.job_id = "run";
  options.watch = true;
  EXPECT_EQ(Submit("{}", options).value(), ExitCode::kJobFailed);
  EXPECT_THAT(streams_.out.str(), HasSubstr("trainctl job logs jobs/run"));
}

TEST_F(CommandsTest, NodesServerAndCheckpoints) {
  v1::Node* node = client_.nodes.add_nodes();
  node->set_name("nodes/local");
  v1::Device* device = node->add_devices();
  device->set_id("cpu0");
  device->set_type("cpu");
  device->set_memory_total_bytes(int64_t{8} << 30);
  device->set_memory_used_bytes(int64_t{2} << 30);
  device->set_utilization_ratio(0.5);
  EXPECT_TRUE(RunNodeList({}, streams_.io, client_).ok());
  EXPECT_EQ(streams_.out.str(),
            "NODE         DEVICE  TYPE  MODEL  MEMORY                USE   JOB\n"
            "nodes/local  cpu0    cpu   -      2.00 GiB of 8.00 GiB  50 %  -\n");
  streams_.out.str("");
  client_.info.set_version("0.1.0");
  client_.info.add_addresses("unix:/run/traind/traind.sock");
  client_.info.set_caller("user:0");
  EXPECT_TRUE(RunServerInfo({}, streams_.io, client_).ok());
  EXPECT_THAT(streams_.out.str(), HasSubstr("listens on  unix:/run/traind/traind.sock\n"));
  streams_.out.str("");
  client_.checkpoint.set_name("jobs/a/checkpoints/25");
  client_.checkpoint.set_step(25);
  client_.checkpoint.set_size_bytes(1536);
  CheckpointListOptions list;
  list.job = "a";
  EXPECT_TRUE(RunCheckpointList(list, streams_.io, client_).ok());
  EXPECT_EQ(streams_.out.str(),
            "NAME                   STEP  SIZE      FILES  AGE  PATH\n"
            "jobs/a/checkpoints/25  25    1.50 KiB  0      -    -\n");
}

TEST_F(CommandsTest, ServerCheckFailsIfACheckFails) {
  auto* check = client_.environment.add_checks();
  check->set_name("worker_binary");
  check->set_result(v1::EnvironmentCheck::WARNING);
  EXPECT_EQ(RunServerCheck({}, streams_.io, client_).value(), ExitCode::kOk);
  check->set_result(v1::EnvironmentCheck::FAILED);
  check->set_message("traind-worker is missing; run make build");
  EXPECT_EQ(RunServerCheck({}, streams_.io, client_).value(), ExitCode::kFailed);
  EXPECT_THAT(streams_.out.str(), HasSubstr("worker_binary  FAILED"));
}

}  // namespace
}  // namespace traind::client
