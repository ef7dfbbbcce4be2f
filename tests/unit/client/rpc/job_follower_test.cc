#include "client/rpc/job_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/fake_client.h"
#include "tests/support/job_events.h"

namespace traind::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobFollowerTest : public ::testing::Test {
 protected:
  absl::StatusOr<v1::StreamEnd::Reason> Follow() {
    options_.name = "jobs/run";
    options_.on_event = [this](const v1::Event& event) { seen_.push_back(event.sequence()); };
    options_.on_lost = [this](const absl::Status&) { ++lost_; };
    options_.on_resumed = [this] { ++resumed_; };
    return FollowJob(client_, options_);
  }

  // The events `first` to `last`, and a heartbeat.
  static std::vector<v1::Event> Events(int64_t first, int64_t last) {
    std::vector<v1::Event> events;
    for (int64_t i = first; i <= last; ++i) {
      events.push_back(StepEvent(i, 100, 1));
      events.back().set_sequence(i);
    }
    events.emplace_back().mutable_heartbeat()->set_last_sequence(last);
    return events;
  }

  static std::vector<v1::Event> WithEnd(std::vector<v1::Event> events,
                                        v1::StreamEnd::Reason reason) {
    events.push_back(EndEvent(reason));
    return events;
  }

  // 1, 2 … n.
  static std::vector<int64_t> UpTo(size_t n) {
    std::vector<int64_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 1);
    return numbers;
  }

  FakeClient client_;
  FollowOptions options_;
  std::vector<int64_t> seen_;
  int lost_ = 0;
  int resumed_ = 0;
};

TEST_F(JobFollowerTest, GoesOnAfterALostConnectionWithoutGapsAndRepeats) {
  client_.watch = {{Events(1, 3), absl::UnavailableError("reset")},
                   {{}, absl::UnavailableError("refused")},
                   {Events(4, 5), absl::InternalError("RST_STREAM")},
                   {WithEnd(Events(6, 7), v1::StreamEnd::JOB_ENDED), absl::OkStatus()}};
  EXPECT_EQ(Follow().value(), v1::StreamEnd::JOB_ENDED);
  EXPECT_EQ(seen_, UpTo(7));
  EXPECT_EQ(lost_, 2);
  EXPECT_EQ(resumed_, 2);
  std::vector<int64_t> after;
  for (const auto& request : client_.watch_requests) after.push_back(request.after_sequence());
  EXPECT_THAT(after, ElementsAre(0, 3, 3, 5));
}

TEST_F(JobFollowerTest, ADaemonThatSendsOldEventsAgainDoesNoHarm) {
  client_.watch = {{Events(1, 3), absl::UnavailableError("reset")},
                   {WithEnd(Events(2, 4), v1::StreamEnd::JOB_ENDED), absl::OkStatus()}};
  EXPECT_TRUE(Follow().ok());
  EXPECT_EQ(seen_, UpTo(4));
}

TEST_F(JobFollowerTest, AGapIsAskedForAgainAndThenRefused) {
  client_.watch = {{Events(1, 2), absl::UnavailableError("reset")},
                   {Events(5, 6), absl::OkStatus()},
                   {Events(5, 6), absl::OkStatus()}};
  const auto end = Follow();
  EXPECT_EQ(end.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(end.status().message()), HasSubstr("left out the events 3 to 4"));
  EXPECT_EQ(seen_, UpTo(2));
}

TEST_F(JobFollowerTest, AStoppingDaemonIsWaitedFor) {
  client_.watch = {{WithEnd(Events(1, 1), v1::StreamEnd::SERVER_STOPPING), absl::OkStatus()},
                   {WithEnd(Events(2, 2), v1::StreamEnd::JOB_DELETED), absl::OkStatus()}};
  EXPECT_EQ(Follow().value(), v1::StreamEnd::JOB_DELETED);
  EXPECT_EQ(seen_, UpTo(2));
}

TEST_F(JobFollowerTest, GivesUpAfterALongSilence) {
  client_.watch = {{Events(1, 1), absl::UnavailableError("reset")}};
  options_.give_up_after = absl::Seconds(60);
  const absl::Time start = client_.now;
  EXPECT_EQ(Follow().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_GT(client_.now - start, absl::Seconds(60));
  EXPECT_LT(client_.now - start, absl::Seconds(65));
}

TEST_F(JobFollowerTest, AnErrorOfTheCallIsFinal) {
  client_.watch = {{{}, Error(absl::StatusCode::kNotFound, Reason::kJobNotFound, "no such job")}};
  EXPECT_EQ(Follow().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(client_.watch_requests.size(), 1u);
}

TEST_F(JobFollowerTest, AnInterruptionEndsTheWaitForTheDaemon) {
  client_.watch = {{Events(1, 1), absl::UnavailableError("reset")}};
  client_.interrupted = true;
  EXPECT_EQ(Follow().status().code(), absl::StatusCode::kCancelled);
}

TEST_F(JobFollowerTest, StopsWhenNoMoreIsWanted) {
  client_.watch = {{Events(1, 5), absl::OkStatus()}};
  options_.wants_more = [this] { return seen_.size() < 2; };
  EXPECT_EQ(Follow().value(), v1::StreamEnd::REASON_UNSPECIFIED);
  EXPECT_EQ(seen_, UpTo(2));
}

TEST_F(JobFollowerTest, StartsAfterTheGivenNumber) {
  client_.watch = {{WithEnd(Events(4, 4), v1::StreamEnd::JOB_ENDED), absl::OkStatus()}};
  options_.after_sequence = 3;
  EXPECT_TRUE(Follow().ok());
  EXPECT_THAT(seen_, ElementsAre(4));
}

}  // namespace
}  // namespace traind::client
