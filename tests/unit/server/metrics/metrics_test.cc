#include "server/metrics/metrics.h"

#include <clocale>
#include <cmath>
#include <cstdio>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics/metrics_server.h"
#include "tests/support/fake_clock.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/temp_dir.h"

namespace traind::metrics {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

using Values = std::map<std::string, std::string>;

v1::Job RunningJob(const std::string& id) {
  v1::Job job;
  job.set_name("jobs/" + id);
  job.set_uid("uid-" + id);
  job.set_state(v1::Job::RUNNING);
  job.mutable_create_time()->set_seconds(100);
  job.mutable_attempt()->set_name("jobs/" + id + "/attempts/1");
  job.mutable_attempt()->add_devices("cpu0");
  return job;
}

v1::Event StateChange(v1::Job::State from, v1::Job::State to) {
  v1::Event event;
  event.set_attempt(1);
  event.mutable_time()->set_seconds(103);
  event.mutable_state_change()->set_from(from);
  event.mutable_state_change()->set_to(to);
  return event;
}

v1::Event Step(double loss) {
  v1::Event event;
  v1::StepMetrics& step = *event.mutable_step();
  step.set_step(3);
  step.set_loss(loss);
  step.set_learning_rate(0.001);
  step.set_grad_norm(std::numeric_limits<double>::infinity());
  step.set_memory_bytes(1000);
  step.set_peak_memory_bytes(2000);
  step.set_cpu_cores(1.5);
  (*step.mutable_phase_seconds())["data"] = 0.25;
  return event;
}

class MetricsTest : public testing::Test {
 protected:
  Values Scrape() {
    const absl::StatusOr<Values> values = ParsePrometheusText(metrics_.Render());
    EXPECT_TRUE(values.ok()) << values.status();
    return values.value_or(Values());
  }

  FakeClock clock_;
  Metrics metrics_{{.version = "0.1.0",
                    .host = "host1",
                    .devices = {{"cpu0", 8000, 2}, {"cpu1", 8000, 2}},
                    .max_job_series = 2},
                   clock_};
};

TEST_F(MetricsTest, CountsJobsByStateFromTheStartOn) {
  metrics_.SetJobCounts({{v1::Job::QUEUED, 1}, {v1::Job::SUCCEEDED, 7}});
  v1::Job job = RunningJob("a");
  metrics_.OnCommitted(job, {StateChange(v1::Job::STATE_UNSPECIFIED, v1::Job::QUEUED),
                             StateChange(v1::Job::QUEUED, v1::Job::STARTING)});
  const Values values = Scrape();
  EXPECT_THAT(values, Contains(Pair("traind_jobs{state=\"QUEUED\"}", "1")));
  EXPECT_THAT(values, Contains(Pair("traind_jobs{state=\"STARTING\"}", "1")));
  EXPECT_THAT(values, Contains(Pair("traind_jobs{state=\"SUCCEEDED\"}", "7")));
  EXPECT_THAT(values, Contains(Pair("traind_jobs{state=\"FAILED\"}", "0")));
  EXPECT_THAT(values,
              Contains(Pair("traind_job_transitions_total{from=\"QUEUED\",to=\"STARTING\"}", "1")));
  EXPECT_THAT(values, Contains(Pair("traind_queue_wait_seconds_sum", "3")));
  metrics_.OnDeleted(v1::Job::SUCCEEDED);
  EXPECT_THAT(Scrape(), Contains(Pair("traind_jobs{state=\"SUCCEEDED\"}", "6")));
}

// Case: a loss that is no number, an infinite norm, a name with quote, backslash and newline.
TEST_F(MetricsTest, WritesNonFiniteNumbersAndEscapesNames) {
  const char* german = std::setlocale(LC_ALL, "de_DE.UTF-8");
  v1::Job job = RunningJob("j-1");
  job.set_display_name("a\"b\\c\nd");
  metrics_.OnCommitted(job, {Step(std::numeric_limits<double>::quiet_NaN())});
  const Values values = Scrape();
  std::setlocale(LC_ALL, "C");
  const std::string labels = "{job_id=\"j-1\",name=\"a\\\"b\\\\c\\nd\"}";
  EXPECT_THAT(values, Contains(Pair("traind_train_loss" + labels, "NaN")));
  EXPECT_THAT(values, Contains(Pair("traind_train_grad_norm" + labels, "+Inf")));
  EXPECT_THAT(values, Contains(Pair("traind_train_learning_rate" + labels, "0.001")))
      << "locale: " << (german == nullptr ? "not installed" : german);
}

TEST_F(MetricsTest, ShowsDevicesByUuidAndJoinsThemToTheJob) {
  v1::Job job = RunningJob("a");
  metrics_.OnCommitted(job, {Step(2.5)});
  const std::string device = "{gpu=\"cpu0\",gpu_uuid=\"cpu0\",host=\"host1\"}";
  const std::string join = "traind_gpu_job_info{attempt=\"1\",gpu_uuid=\"cpu0\",job_id=\"a\"}";
  Values values = Scrape();
  EXPECT_THAT(values, Contains(Pair("traind_gpu_utilization_ratio" + device, "0.75")));
  EXPECT_THAT(values, Contains(Pair("traind_gpu_memory_used_bytes" + device, "1000")));
  EXPECT_THAT(values, Contains(Pair("traind_gpu_memory_total_bytes" + device, "8000")));
  EXPECT_THAT(values, Contains(Pair(join, "1")));

  job.set_state(v1::Job::SUCCEEDED);
  metrics_.OnCommitted(job, {StateChange(v1::Job::RUNNING, v1::Job::SUCCEEDED)});
  values = Scrape();
  EXPECT_THAT(values, Contains(Pair("traind_gpu_memory_used_bytes" + device, "0")));
  EXPECT_THAT(values, Not(Contains(Key(join))));
}

TEST_F(MetricsTest, TrainingSeriesGoAWhileAfterTheEnd) {
  v1::Job job = RunningJob("a");
  job.mutable_progress()->set_tokens(500);
  metrics_.OnCommitted(job, {Step(2.5), StateChange(v1::Job::RUNNING, v1::Job::FAILED)});
  const std::string labels = "{job_id=\"a\",name=\"a\"}";
  EXPECT_THAT(Scrape(), Contains(Pair("traind_train_loss" + labels, "2.5")));
  EXPECT_THAT(Scrape(), Contains(Pair("traind_train_tokens_total" + labels, "500")));
  clock_.Advance(absl::Minutes(6));
  const std::string text = metrics_.Render();
  EXPECT_THAT(text, Not(HasSubstr("job_id=\"a\",name")));
  EXPECT_THAT(text, HasSubstr("traind_jobs_finished_total{reason=\"\",result=\"failed\"} 1"));
}

TEST_F(MetricsTest, CapsTheJobsWithSeriesAndCountsTheOthers) {
  metrics_.OnCommitted(RunningJob("a"), {Step(1)});
  metrics_.OnCommitted(RunningJob("b"), {Step(1)});
  metrics_.OnCommitted(RunningJob("c"), {Step(1)});
  metrics_.OnCommitted(RunningJob("c"), {Step(1)});
  Values values = Scrape();
  EXPECT_THAT(values, Not(Contains(Key("traind_train_loss{job_id=\"c\",name=\"c\"}"))));
  EXPECT_THAT(values, Contains(Pair("traind_metrics_series_dropped_total", "1")));
  // A job that has ended makes room at once.
  metrics_.OnCommitted(RunningJob("a"), {StateChange(v1::Job::RUNNING, v1::Job::SUCCEEDED)});
  metrics_.OnCommitted(RunningJob("d"), {Step(1)});
  values = Scrape();
  EXPECT_THAT(values, Contains(Key("traind_train_loss{job_id=\"d\",name=\"d\"}")));
  EXPECT_THAT(values, Not(Contains(Key("traind_train_loss{job_id=\"a\",name=\"a\"}"))));
}

TEST_F(MetricsTest, AsksForHeartbeatsAtEachScrape) {
  metrics_.SetHeartbeatSource([] {
    return Metrics::HeartbeatAges{{"attempt-1", absl::Milliseconds(1500)}};
  });
  const char kSeries[] = "traind_worker_heartbeat_age_seconds{worker=\"attempt-1\"}";
  EXPECT_THAT(Scrape(), Contains(Pair(kSeries, "1.5")));
  metrics_.SetHeartbeatSource([] { return Metrics::HeartbeatAges{}; });
  EXPECT_THAT(Scrape(), Not(Contains(Key(kSeries))));
}

TEST_F(MetricsTest, PassesPromtool) {
  const TempDir temp;
  metrics_.SetJobCounts({});
  metrics_.OnSubmitted(SubmitResult::kAccepted, absl::Milliseconds(3));
  metrics_.OnCommitted(RunningJob("a"), {Step(std::nan(""))});
  metrics_.ObserveTransaction("create", absl::Milliseconds(2));
  metrics_.OnRpcFinished("CreateJob", absl::StatusCode::kOk, absl::Milliseconds(4));
  metrics_.OnStreamsChanged("WatchJob", 1);
  ASSERT_TRUE(WriteFileAtomically(temp.File("metrics"), metrics_.Render()).ok());
  const std::string command =
      absl::StrCat("if command -v promtool >/dev/null; then promtool check metrics < ",
                   temp.File("metrics"), " 2>&1; fi");
  FILE* pipe = ::popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char buffer[4096];
  const size_t count = ::fread(buffer, 1, sizeof buffer, pipe);
  EXPECT_EQ(::pclose(pipe), 0) << std::string(buffer, count);
}

TEST_F(MetricsTest, ServesTheTextOverHttp) {
  auto server = MetricsServer::Start("127.0.0.1", 0, metrics_);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string answer =
      SendHttp((*server)->port(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_TRUE(absl::StartsWith(answer, "HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; version=0.0.4"));
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  EXPECT_TRUE(ParsePrometheusText(body).ok()) << body;
  EXPECT_THAT(SendHttp((*server)->port(), "GET / HTTP/1.1\r\n\r\n"), HasSubstr(" 404 "));
  EXPECT_THAT(SendHttp((*server)->port(), "POST /metrics HTTP/1.1\r\n\r\n"), HasSubstr(" 405 "));
}

TEST_F(MetricsTest, NamesTheAddressThatIsInUse) {
  auto first = MetricsServer::Start("127.0.0.1", 0, metrics_);
  ASSERT_TRUE(first.ok()) << first.status();
  const int port = (*first)->port();
  const absl::Status status = MetricsServer::Start("127.0.0.1", port, metrics_).status();
  EXPECT_EQ(ReasonOf(status), Reason::kAddressInUse);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("127.0.0.1:", port)));
}

TEST(PrometheusTextTest, TheReaderIsStrict) {
  const std::string head = "# HELP a h\n# TYPE a gauge\n";
  EXPECT_TRUE(ParsePrometheusText(head + "a 1\n").ok());
  for (const char* bad : {"a Nan\n", "a 1,5\n", "a 1", "b 1\n", "a 1\na 2\n", "a{x=\"\\q\"} 1\n"}) {
    EXPECT_FALSE(ParsePrometheusText(head + bad).ok()) << bad;
  }
  EXPECT_FALSE(ParsePrometheusText("a 1\n").ok());
}

}  // namespace
}  // namespace traind::metrics
