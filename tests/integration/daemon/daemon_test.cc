// The daemon in this process, as clients see it.
#include "server/daemon/daemon.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/daemon_client.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind::daemon {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Pair;

class DaemonTest : public testing::Test {
 protected:
  ~DaemonTest() override {
    daemon_.reset();
    launcher::LocalLauncher launcher({"", state_dir_});
    for (const std::string& uid : launcher.FindAttempts()) {
      EXPECT_TRUE(launcher.KillAttempt(uid, absl::ZeroDuration()).ok());
    }
  }

  config::v1::TraindConfig Config() {
    config::v1::TraindConfig config;
    config.set_state_dir(state_dir_);
    config.set_listen_unix(socket_);
    config.set_metrics_address("127.0.0.1:0");
    config.add_allowed_roots(temp_.path());
    config.set_worker_binary(TRAIND_FAKE_WORKER_BINARY);
    const auto resolved = config::ResolveConfig(config, config::CurrentHost());
    EXPECT_TRUE(resolved.ok()) << resolved.status();
    return resolved.value_or(config);
  }

  void Start() {
    auto daemon = Daemon::Start(Config());
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
  }

  v1::Job Submit(const std::string& behaviour) {
    EXPECT_EQ(::setenv("TRAIND_FAKE_WORKER", behaviour.c_str(), 1), 0);
    const auto job = client_.CreateJob(MakeJobRequest(temp_.path()));
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(v1::Job());
  }

  std::string Hold(int step) {
    return absl::StrCat("hold_at=", step, " hold_file=", temp_.File("go"), " ");
  }
  void LetGo() { ASSERT_TRUE(WriteFileAtomically(temp_.File("go"), "").ok()); }

  const TempDir temp_;
  const std::string state_dir_ = temp_.File("state");
  const std::string socket_ = temp_.File("traind.sock");
  DaemonClient client_{socket_};
  std::unique_ptr<Daemon> daemon_;
};

TEST_F(DaemonTest, AWatcherSeesAJobFromItsCreationToItsEnd) {
  Start();
  const v1::Job job = Submit("steps=5");
  const std::vector<v1::Event> events = client_.Watch(job.name(), 0);
  EXPECT_TRUE(IsDense(events));
  EXPECT_THAT(StepsOf(events), ElementsAre(1, 2, 3, 4, 5));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().end().reason(), v1::StreamEnd::JOB_ENDED);
  EXPECT_EQ(client_.GetJob(job.name())->state(), v1::Job::SUCCEEDED);
}

TEST_F(DaemonTest, AStopEndsStreamsButNotJobsAndAWatcherGoesOnWithoutAGap) {
  Start();
  const v1::Job job = Submit(Hold(3) + "steps=6");
  client_.WaitForStep(job.name(), 3);
  std::vector<v1::Event> events;
  std::atomic<int> received = 0;
  std::thread watcher([&] { events = client_.Watch(job.name(), 0, 0, [&] { ++received; }); });
  EXPECT_TRUE(WaitUntil([&] { return received > 0; }));
  daemon_->Stop();
  watcher.join();
  daemon_.reset();
  LetGo();
  Start();
  const int64_t last = events.size() < 2 ? 0 : events[events.size() - 2].sequence();
  const std::vector<v1::Event> rest = client_.Watch(job.name(), last);
  EXPECT_TRUE(IsDense(events));
  EXPECT_TRUE(IsDense(rest, last + 1));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().end().reason(), v1::StreamEnd::SERVER_STOPPING);
  const v1::Job ended = *client_.GetJob(job.name());
  EXPECT_EQ(ended.state(), v1::Job::SUCCEEDED) << ended.error().message();
  EXPECT_THAT(StepsOf(client_.Watch(job.name(), 0)), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST_F(DaemonTest, AScrapeShowsTheRunningJobItsDeviceAndTheDaemon) {
  Start();
  const v1::Job job = Submit(Hold(3) + "steps=4 nan_at=3");
  client_.WaitForStep(job.name(), 3);
  const auto values = ParsePrometheusText(HttpBody(daemon_->metrics_port(), "/metrics"));
  ASSERT_TRUE(values.ok()) << values.status();
  const std::string id = job.name().substr(std::string("jobs/").size());
  const std::string labels = absl::StrCat("{job_id=\"", id, "\",name=\"", id, "\"}");
  EXPECT_THAT(*values, Contains(Pair("traind_train_loss" + labels, "NaN")));
  EXPECT_THAT(*values, Contains(Pair("traind_train_grad_norm" + labels, "+Inf")));
  EXPECT_THAT(*values, Contains(Pair("traind_train_step" + labels, "3")));
  EXPECT_THAT(*values, Contains(Pair("traind_train_progress_ratio" + labels, "0.75")));
  EXPECT_THAT(*values, Contains(Pair("traind_train_tokens_total" + labels, "300")));
  EXPECT_THAT(*values, Contains(Pair("traind_jobs{state=\"RUNNING\"}", "1")));
  EXPECT_THAT(*values, Contains(Pair("traind_jobs_submitted_total{result=\"accepted\"}", "1")));
  EXPECT_THAT(*values,
              Contains(Pair(absl::StrCat("traind_gpu_job_info{attempt=\"1\",gpu_uuid=\"cpu0\",",
                                         "job_id=\"", id, "\"}"),
                            "1")));
  EXPECT_THAT(*values, Contains(Key(HasSubstr("traind_gpu_memory_used_bytes{gpu=\"cpu0\""))));
  EXPECT_THAT(*values, Contains(Key(HasSubstr("traind_worker_heartbeat_age_seconds{worker="))));
  EXPECT_THAT(*values, Contains(Key("traind_build_info{version=\"0.1.0\"}")));
  LetGo();
  client_.WaitFor(job.name(), v1::Job::SUCCEEDED);
}

TEST_F(DaemonTest, ASecondDaemonOnTheFolderIsTurnedAwayWithThePidOfTheFirst) {
  Start();
  const absl::Status status = Daemon::Start(Config()).status();
  EXPECT_EQ(ReasonOf(status), Reason::kStateDirLocked);
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(::getpid())));
  EXPECT_THAT(std::string(status.message()), HasSubstr(state_dir_));
}

TEST_F(DaemonTest, AnAddressInUseIsNamed) {
  Start();
  config::v1::TraindConfig config = Config();
  config.set_state_dir(temp_.File("other"));
  const absl::Status socket = Daemon::Start(config).status();
  EXPECT_EQ(ReasonOf(socket), Reason::kAddressInUse);
  EXPECT_THAT(std::string(socket.message()), HasSubstr(socket_));

  config.set_listen_unix(temp_.File("other.sock"));
  config.set_metrics_address(absl::StrCat("127.0.0.1:", daemon_->metrics_port()));
  const absl::Status port = Daemon::Start(config).status();
  EXPECT_EQ(ReasonOf(port), Reason::kAddressInUse);
  EXPECT_THAT(std::string(port.message()), HasSubstr(config.metrics_address()));
}

TEST_F(DaemonTest, ADaemonThatCouldNotStartLeavesTheFolderFree) {
  config::v1::TraindConfig config = Config();
  config.set_metrics_address("no.such.host.invalid:1");
  EXPECT_EQ(ReasonOf(Daemon::Start(config).status()), Reason::kConfigInvalid);
  Start();
}

}  // namespace
}  // namespace traind::daemon
