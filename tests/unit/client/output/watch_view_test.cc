#include "client/output/watch_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/status/errors.h"
#include "common/status/rpc_status.h"
#include "tests/support/job_events.h"
#include "tests/support/test_streams.h"

namespace traind::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(WatchViewTest, APipeGetsPlainLinesAndASummary) {
  TestStreams streams;
  WatchView view(streams.io, "jobs/run");
  for (const v1::Event& event : EventsOfARun(3)) view.OnEvent(event);
  view.PrintSummary(SucceededJob("jobs/run"));
  EXPECT_EQ(streams.out.str(),
            "jobs/run  QUEUED\n"
            "jobs/run  STARTING\n"
            "  loading model\n"
            "  rows        300 kept, 2 dropped (2 no_supervised_tokens), 1 cut, 40 evaluated\n"
            "  tokens      4,100 trained of 9,299 in one pass\n"
            "  updates     3, 3 in one pass\n"
            "  parameters  4,884,480 trained of 139,399,488\n"
            "  eval        step 0  loss 3.85  40 rows in 2.0s\n"
            "jobs/run  RUNNING\n"
            "  step 1/3  loss 3.9  lr 0.001  grad 0.5  50 tokens/s  4.0s left\n"
            "  step 2/3  loss 3.8  lr 0.001  grad 0.5  50 tokens/s  2.0s left\n"
            "  step 3/3  loss 3.7  lr 0.001  grad 0.5  50 tokens/s\n"
            "  eval        step 3  loss 2.78  40 rows in 2.0s\n"
            "  checkpoint  jobs/run/checkpoints/3  12.0 MiB, training stood still for 0.2s\n"
            "  sample      step 3  Define the noun \"lantern\".\n"
            "    → a portable light\n"
            "jobs/run  SUCCEEDED\n"
            "\n"
            "jobs/run  SUCCEEDED after 2m31s\n"
            "  loss         3.9 → 3.7 (-5.1 %)\n"
            "  eval loss    3.85 → 2.78 (-27.8 %)\n"
            "  tokens/s     50\n"
            "  peak memory  1.50 GiB\n"
            "  adapter      /var/lib/traind/jobs/run/adapter\n");
}

TEST(WatchViewTest, ATerminalRedrawsTwoLines) {
  TestStreams streams;
  streams.io.out_is_terminal = true;
  streams.io.width = 80;
  WatchView view(streams.io, "jobs/run");
  view.OnEvent(StepEvent(1, 4, 3.9));
  EXPECT_EQ(streams.out.str(),
            "  █████░░░░░░░░░░░░░░░  1/4  25 %  6.0s left  50 tokens/s  1.00 GiB\n"
            "  loss 3.9  ▅  lr 0.001  grad 0.5\n");
  streams.out.str("");
  view.OnEvent(StepEvent(2, 4, 3.5));
  EXPECT_EQ(streams.out.str(),
            "\r\x1b[2A\x1b[J"
            "  ██████████░░░░░░░░░░  2/4  50 %  4.0s left  50 tokens/s  1.00 GiB\n"
            "  loss 3.5  █▁  lr 0.001  grad 0.5\n");
  streams.out.str("");
  view.OnEvent(EvalEvent(2, 3.0));
  EXPECT_THAT(streams.out.str(), HasSubstr("\r\x1b[2A\x1b[J  eval "));
  streams.out.str("");
  view.Close();
  EXPECT_EQ(streams.out.str(), "\r\x1b[2A\x1b[J");
}

TEST(WatchViewTest, AFailedJobTellsErrorReasonHintAndLogCommand) {
  v1::Job job;
  job.set_name("jobs/run");
  job.set_state(v1::Job::FAILED);
  *job.mutable_error() = ToRpcStatus(
      Error(absl::StatusCode::kInvalidArgument, Reason::kNonFiniteLoss, "loss is NaN at update 7"));
  TestStreams streams;
  WatchView(streams.io, "jobs/run").PrintSummary(job);
  EXPECT_EQ(streams.out.str(),
            "\n"
            "jobs/run  FAILED\n"
            "  error   loss is NaN at update 7\n"
            "  reason  NON_FINITE_LOSS\n"
            "  hint    lower `training.learning_rate`, and look at the rows\n"
            "  log     trainctl job logs jobs/run\n");
}

TEST(WatchViewTest, ALossThatIsNaNIsShown) {
  TestStreams streams;
  WatchView view(streams.io, "jobs/run");
  view.OnEvent(StepEvent(1, 2, std::nan("")));
  EXPECT_THAT(streams.out.str(), HasSubstr("loss NaN"));
  view.OnEvent(StepEvent(2, 2, std::nan("")));
  view.PrintSummary(v1::Job());
  EXPECT_THAT(streams.out.str(), HasSubstr("NaN → NaN\n"));
}

TEST(WatchViewTest, AnAnswerCannotDriveTheTerminal) {
  v1::Event event;
  event.mutable_sample()->set_answer("\x1b[2Jgone");
  TestStreams streams;
  WatchView(streams.io, "jobs/run").OnEvent(event);
  EXPECT_THAT(streams.out.str(), Not(HasSubstr("\x1b")));
}

TEST(WatchViewTest, MessagesGoToStderr) {
  TestStreams streams;
  WatchView(streams.io, "jobs/run").Message("connection lost");
  EXPECT_EQ(streams.err.str(), "connection lost\n");
  EXPECT_EQ(streams.out.str(), "");
}

}  // namespace
}  // namespace traind::client
