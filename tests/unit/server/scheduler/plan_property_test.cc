// What every plan must keep, over random snapshots. The seed is in each message.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/scheduler/plan.h"
#include "server/scheduler/queue_order.h"
#include "tests/support/test_snapshots.h"

namespace traind::scheduler {
namespace {

constexpr unsigned kFirstSeed = 20240701;
constexpr unsigned kSeeds = 500;

int Pick(std::mt19937& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

Snapshot RandomSnapshot(unsigned seed) {
  std::mt19937 random(seed);
  Snapshot snapshot;
  for (const char* type : {"cpu", "cuda"}) {
    for (Device& device : TestDevices(type, Pick(random, 0, 6))) {
      if (Pick(random, 0, 2) == 0) device.holder = absl::StrCat("jobs/held", Pick(random, 0, 2));
      snapshot.devices.push_back(device);
    }
  }
  const std::vector<std::string> types = {"cpu", "cuda", "auto"};
  const int jobs = Pick(random, 0, 10);
  for (int i = 0; i < jobs; ++i) {
    snapshot.queue.push_back(TestQueuedJob(absl::StrCat("j", i), Pick(random, 0, 2),
                                           Pick(random, 0, 4), Pick(random, 1, 5),
                                           types[static_cast<size_t>(Pick(random, 0, 2))]));
  }
  return snapshot;
}

std::string Text(const Plan& plan) {
  std::string text;
  for (const Assignment& job : plan.assignments) {
    absl::StrAppend(&text, job.job_uid, "=");
    for (const std::string& id : job.devices) absl::StrAppend(&text, id, ",");
    absl::StrAppend(&text, "\n");
  }
  for (const Waiting& job : plan.waiting) absl::StrAppend(&text, job.job_uid, job.reason, "\n");
  for (const Impossible& job : plan.impossible) {
    absl::StrAppend(&text, job.job_uid, std::string(job.why.message()), "\n");
  }
  return text;
}

const Device& DeviceNamed(const Snapshot& snapshot, const std::string& id) {
  const auto found = std::find_if(snapshot.devices.begin(), snapshot.devices.end(),
                                  [&](const Device& device) { return device.id == id; });
  EXPECT_TRUE(found != snapshot.devices.end()) << id;
  return *found;
}

const QueuedJob& JobNamed(const Snapshot& snapshot, const std::string& uid) {
  const auto found = std::find_if(snapshot.queue.begin(), snapshot.queue.end(),
                                  [&](const QueuedJob& job) { return job.uid == uid; });
  EXPECT_TRUE(found != snapshot.queue.end()) << uid;
  return *found;
}

// Calls `check` with many snapshots and their plans.
template <typename Check>
void ForEachSeed(const Check& check) {
  for (unsigned seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Snapshot snapshot = RandomSnapshot(seed);
    check(snapshot, MakePlan(snapshot), seed);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(PlanPropertyTest, EveryJobIsInExactlyOneList) {
  ForEachSeed([](const Snapshot& snapshot, const Plan& plan, unsigned) {
    std::multiset<std::string> uids;
    for (const Assignment& job : plan.assignments) uids.insert(job.job_uid);
    for (const Waiting& job : plan.waiting) uids.insert(job.job_uid);
    for (const Impossible& job : plan.impossible) uids.insert(job.job_uid);
    std::multiset<std::string> expected;
    for (const QueuedJob& job : snapshot.queue) expected.insert(job.uid);
    EXPECT_EQ(uids, expected);
  });
}

TEST(PlanPropertyTest, OnlyFreeDevicesAreGivenAndEachOnce) {
  ForEachSeed([](const Snapshot& snapshot, const Plan& plan, unsigned) {
    std::set<std::string> given;
    for (const Assignment& assignment : plan.assignments) {
      for (const std::string& id : assignment.devices) {
        EXPECT_TRUE(given.insert(id).second) << id;
        EXPECT_EQ(DeviceNamed(snapshot, id).holder, "");
      }
    }
  });
}

TEST(PlanPropertyTest, AJobGetsAsManyAsItAskedForOfOneType) {
  ForEachSeed([](const Snapshot& snapshot, const Plan& plan, unsigned) {
    for (const Assignment& assignment : plan.assignments) {
      const QueuedJob& job = JobNamed(snapshot, assignment.job_uid);
      EXPECT_EQ(static_cast<int>(assignment.devices.size()), job.devices);
      std::set<std::string> types;
      for (const std::string& id : assignment.devices) {
        types.insert(DeviceNamed(snapshot, id).type);
      }
      EXPECT_EQ(types.size(), 1u);
      EXPECT_TRUE(job.device_type == "auto" || job.device_type == *types.begin());
    }
  });
}

TEST(PlanPropertyTest, TheSameSnapshotInAnyOrderGivesTheSamePlan) {
  ForEachSeed([](const Snapshot& snapshot, const Plan& plan, unsigned seed) {
    std::mt19937 random(seed);
    Snapshot shuffled = snapshot;
    std::shuffle(shuffled.queue.begin(), shuffled.queue.end(), random);
    std::shuffle(shuffled.devices.begin(), shuffled.devices.end(), random);
    EXPECT_EQ(Text(MakePlan(shuffled)), Text(plan));
  });
}

TEST(PlanPropertyTest, APlanAppliedTwiceIsThePlanAppliedOnce) {
  ForEachSeed([](const Snapshot& snapshot, const Plan& plan, unsigned) {
    const Plan second = MakePlan(AfterPlan(snapshot, plan));
    EXPECT_TRUE(second.assignments.empty());
    EXPECT_TRUE(second.impossible.empty());
    ASSERT_EQ(second.waiting.size(), plan.waiting.size());
    for (size_t i = 0; i < plan.waiting.size(); ++i) {
      EXPECT_EQ(second.waiting[i].job_uid, plan.waiting[i].job_uid);
      EXPECT_EQ(second.waiting[i].reason, plan.waiting[i].reason);
    }
  });
}

TEST(PlanPropertyTest, NothingOvertakesAWaitingJobOfItsType) {
  ForEachSeed([](const Snapshot& snapshot, const Plan& plan, unsigned) {
    for (const Waiting& waiting : plan.waiting) {
      const QueuedJob& waits = JobNamed(snapshot, waiting.job_uid);
      for (const Assignment& assignment : plan.assignments) {
        const std::string& type = DeviceNamed(snapshot, assignment.devices[0]).type;
        const bool same_type =
            waiting.reason.find(absl::StrCat(" ", type, " device")) != std::string::npos;
        if (!same_type) continue;
        EXPECT_TRUE(GoesBefore(JobNamed(snapshot, assignment.job_uid), waits))
            << assignment.job_uid << " overtook " << waits.uid;
      }
    }
  });
}

TEST(PlanPropertyTest, NobodyWaitsWithoutNeed) {
  ForEachSeed([](const Snapshot& snapshot, const Plan& plan, unsigned) {
    const Snapshot after = AfterPlan(snapshot, plan);
    std::map<std::string, int> free;
    for (const Device& device : after.devices) free[device.type] += device.holder.empty() ? 1 : 0;
    for (const Waiting& waiting : plan.waiting) {
      if (waiting.reason.find("is first") != std::string::npos) continue;
      const QueuedJob& head = JobNamed(snapshot, waiting.job_uid);
      const bool cuda = waiting.reason.find(" cuda device") != std::string::npos;
      EXPECT_LT(free[cuda ? "cuda" : "cpu"], head.devices) << waiting.reason;
    }
  });
}

}  // namespace
}  // namespace traind::scheduler
