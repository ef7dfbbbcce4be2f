// The planner on a simulated clock: small jobs must not starve a big one.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/scheduler/plan.h"
#include "tests/support/test_snapshots.h"

namespace traind::scheduler {
namespace {

struct TraceJob {
  std::string id;
  int devices = 1;
  int arrive = 0;
  int run = 1;
  int priority = 0;
};

// Plays the trace and returns when each job started.
std::map<std::string, int> Play(const std::vector<TraceJob>& trace, int devices, int until) {
  Snapshot now;
  now.devices = TestDevices("cuda", devices);
  std::map<std::string, int> starts;
  for (int time = 0; time <= until; ++time) {
    for (const TraceJob& job : trace) {
      const auto start = starts.find(job.id);
      if (start != starts.end() && start->second + job.run == time) {
        for (Device& device : now.devices) {
          if (device.holder == absl::StrCat("jobs/", job.id)) device.holder.clear();
        }
      }
      if (job.arrive != time) continue;
      now.queue.push_back(TestQueuedJob(job.id, job.priority, -time, job.devices, "cuda"));
    }
    const Plan plan = MakePlan(now);
    for (const Assignment& assignment : plan.assignments) {
      starts[assignment.job_uid.substr(4)] = time;
    }
    now = AfterPlan(now, plan);
  }
  return starts;
}

// Four devices: three small jobs until 10, a big one at 1, then a stream of small ones.
std::vector<TraceJob> StarvationTrace(int big_priority) {
  std::vector<TraceJob> trace = {{"s0", 1, 0, 10, 0},
                                 {"s1", 1, 0, 10, 0},
                                 {"s2", 1, 0, 10, 0},
                                 {"big", 4, 1, 5, big_priority}};
  for (int i = 0; i < 20; ++i) trace.push_back({absl::StrCat("t", i), 1, 2 + i, 10, 0});
  return trace;
}

TEST(TraceTest, SmallJobsDoNotStarveABigOne) {
  for (const int big_priority : {10, 0}) {
    SCOPED_TRACE(testing::Message() << "priority " << big_priority);
    const std::map<std::string, int> starts = Play(StarvationTrace(big_priority), 4, 100);
    EXPECT_EQ(starts.at("big"), 10);
    EXPECT_EQ(starts.at("t0"), 15);
    for (int i = 0; i < 20; ++i) EXPECT_GE(starts.at(absl::StrCat("t", i)), 15);
  }
}

TEST(TraceTest, EqualJobsStartInTheOrderOfTheirArrival) {
  const std::string ids = "abcdefghijkl";
  std::vector<TraceJob> trace;
  for (size_t i = 0; i < ids.size(); ++i) {
    trace.push_back({ids.substr(i, 1), 1, static_cast<int>(i) / 3, 4, 0});
  }
  const std::map<std::string, int> starts = Play(trace, 2, 60);
  ASSERT_EQ(starts.size(), trace.size());
  for (size_t i = 1; i < ids.size(); ++i) {
    EXPECT_LE(starts.at(trace[i - 1].id), starts.at(trace[i].id));
  }
}

// A job at the head waits at most for what ran when it got there.
TEST(TraceTest, WaitAtTheHeadIsBoundedByWhatRuns) {
  constexpr int kLongestRun = 6;
  for (unsigned seed = 7; seed < 207; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    std::vector<TraceJob> trace;
    for (int i = 0; i < 15; ++i) {
      trace.push_back({absl::StrCat("j", i), pick(1, 4), pick(0, 20), pick(1, kLongestRun), 0});
    }
    const std::map<std::string, int> starts = Play(trace, 4, 200);
    ASSERT_EQ(starts.size(), trace.size());
    std::stable_sort(trace.begin(), trace.end(), [&](const TraceJob& a, const TraceJob& b) {
      return starts.at(a.id) < starts.at(b.id);
    });
    for (size_t i = 1; i < trace.size(); ++i) {
      const int at_head = std::max(trace[i].arrive, starts.at(trace[i - 1].id));
      ASSERT_LE(starts.at(trace[i].id) - at_head, kLongestRun) << trace[i].id;
    }
  }
}

}  // namespace
}  // namespace traind::scheduler
