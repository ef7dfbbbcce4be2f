#include "server/scheduler/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/status/errors.h"
#include "tests/support/test_snapshots.h"

namespace traind::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// `a=cpu0,cpu1` for each assignment, then `b waits: …`, then `c never: …`.
std::vector<std::string> Describe(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Assignment& assignment : plan.assignments) {
    std::string devices;
    for (const std::string& id : assignment.devices) {
      devices += (devices.empty() ? "" : ",") + id;
    }
    lines.push_back(assignment.job_uid.substr(4) + "=" + devices);
  }
  for (const Waiting& job : plan.waiting) {
    lines.push_back(job.job_uid.substr(4) + " " + job.reason);
  }
  for (const Impossible& job : plan.impossible) {
    lines.push_back(job.job_uid.substr(4) + " never: " + std::string(job.why.message()));
  }
  return lines;
}

struct Case {
  std::string name;
  Snapshot snapshot;
  std::vector<std::string> expected;
};

Device Held(const std::string& id, const std::string& type, const std::string& holder) {
  return {id, type, holder};
}

std::vector<Case> Placements() {
  return {
      {"nothing to do", {{}, TestDevices("cpu", 1)}, {}},
      {"one job, one device", {{TestQueuedJob("a", 0, 1, 1)}, TestDevices("cpu", 1)}, {"a=cpu0"}},
      {"the older of two",
       {{TestQueuedJob("a", 0, 1, 1), TestQueuedJob("b", 0, 2, 1)}, TestDevices("cpu", 1)},
       {"b=cpu0", "a waits for 1 cpu device; 1 of 1 in use by jobs/b"}},
      {"the more urgent of two",
       {{TestQueuedJob("a", 9, 1, 1), TestQueuedJob("b", 0, 2, 1)}, TestDevices("cpu", 1)},
       {"a=cpu0", "b waits for 1 cpu device; 1 of 1 in use by jobs/a"}},
      {"several at once",
       {{TestQueuedJob("a", 0, 3, 2), TestQueuedJob("b", 0, 2, 1)}, TestDevices("cpu", 4)},
       {"a=cpu0,cpu1", "b=cpu2"}},
      {"a held device is not given again",
       {{TestQueuedJob("a", 0, 1, 1)}, {Held("cpu0", "cpu", "jobs/x"), Held("cpu1", "cpu", "")}},
       {"a=cpu1"}},
      {"devices are given in the order of their numbers",
       {{TestQueuedJob("a", 0, 1, 2)},
        {Held("cpu10", "cpu", ""), Held("cpu2", "cpu", ""), Held("cpu1", "cpu", "")}},
       {"a=cpu1,cpu2"}},
      {"types are apart",
       {{TestQueuedJob("a", 0, 2, 1, "cuda"), TestQueuedJob("b", 0, 1, 1, "cpu")},
        {Held("cpu0", "cpu", ""), Held("cuda0", "cuda", "")}},
       {"a=cuda0", "b=cpu0"}},
      {"auto takes cuda if there is enough",
       {{TestQueuedJob("a", 0, 1, 1, "auto")},
        {Held("cpu0", "cpu", ""), Held("cuda0", "cuda", "")}},
       {"a=cuda0"}},
      {"auto takes the cpu if there is no cuda",
       {{TestQueuedJob("a", 0, 1, 1, "auto")}, TestDevices("cpu", 1)},
       {"a=cpu0"}},
      {"auto takes the cpu if cuda can never suffice",
       {{TestQueuedJob("a", 0, 1, 2, "auto")},
        {Held("cpu0", "cpu", ""), Held("cpu1", "cpu", ""), Held("cuda0", "cuda", "")}},
       {"a=cpu0,cpu1"}},
      {"auto waits for cuda rather than train on a free cpu",
       {{TestQueuedJob("a", 0, 1, 1, "auto")},
        {Held("cpu0", "cpu", ""), Held("cuda0", "cuda", "jobs/x")}},
       {"a waits for 1 cuda device; 1 of 1 in use by jobs/x"}},
      {"an empty type is auto",
       {{TestQueuedJob("a", 0, 1, 1, "")}, TestDevices("cpu", 1)},
       {"a=cpu0"}},
  };
}

std::vector<Case> Waits() {
  return {
      {"the head that does not fit reserves; nothing overtakes",
       {{TestQueuedJob("big", 5, 1, 4), TestQueuedJob("a", 0, 9, 1), TestQueuedJob("b", 0, 8, 1)},
        {Held("cpu0", "cpu", "jobs/x"), Held("cpu1", "cpu", ""), Held("cpu2", "cpu", ""),
         Held("cpu3", "cpu", "")}},
       {"big waits for 4 cpu devices; 1 of 4 in use by jobs/x",
        "a waits for 1 cpu device; number 2 in the queue, jobs/big is first",
        "b waits for 1 cpu device; number 3 in the queue, jobs/big is first"}},
      {"jobs before the head still start",
       {{TestQueuedJob("a", 9, 1, 1), TestQueuedJob("big", 5, 1, 2), TestQueuedJob("b", 0, 8, 1)},
        TestDevices("cpu", 2)},
       {"a=cpu0", "big waits for 2 cpu devices; 1 of 2 in use by jobs/a",
        "b waits for 1 cpu device; number 2 in the queue, jobs/big is first"}},
      {"a head of one type holds nobody of another",
       {{TestQueuedJob("big", 5, 1, 2, "cuda"), TestQueuedJob("a", 0, 8, 1, "cpu")},
        {Held("cuda0", "cuda", ""), Held("cuda1", "cuda", "jobs/x"), Held("cpu0", "cpu", "")}},
       {"a=cpu0", "big waits for 2 cuda devices; 1 of 2 in use by jobs/x"}},
      {"a holder of several devices is named once",
       {{TestQueuedJob("a", 0, 1, 1)},
        {Held("cpu0", "cpu", "jobs/x"), Held("cpu1", "cpu", "jobs/x")}},
       {"a waits for 1 cpu device; 2 of 2 in use by jobs/x"}},
      {"three holders are named, more are counted",
       {{TestQueuedJob("a", 0, 1, 1)},
        {Held("cpu0", "cpu", "jobs/e"), Held("cpu1", "cpu", "jobs/d"),
         Held("cpu2", "cpu", "jobs/c"), Held("cpu3", "cpu", "jobs/b"),
         Held("cpu4", "cpu", "jobs/f")}},
       {"a waits for 1 cpu device; 5 of 5 in use by jobs/b, jobs/c, jobs/d and 2 more"}},
  };
}

std::vector<Case> Impossibles() {
  return {
      {"more than the node has",
       {{TestQueuedJob("a", 0, 1, 3)}, TestDevices("cpu", 2)},
       {"a never: jobs/a needs 3 cpu devices, but this node has 2; set resources.devices to at "
        "most 2"}},
      {"a type that the node does not have",
       {{TestQueuedJob("a", 0, 1, 1, "cuda")}, TestDevices("cpu", 2)},
       {"a never: jobs/a needs 1 cuda device, but this node has 0; set resources.device_type to "
        "one that `node list` shows"}},
      {"auto on a node without devices",
       {{TestQueuedJob("a", 0, 1, 1, "auto")}, {}},
       {"a never: jobs/a needs 1 cpu device, but this node has 0; set resources.device_type to "
        "one that `node list` shows"}},
      {"a job that never fits does not block the queue",
       {{TestQueuedJob("huge", 9, 1, 99), TestQueuedJob("a", 0, 1, 1)}, TestDevices("cpu", 1)},
       {"a=cpu0",
        "huge never: jobs/huge needs 99 cpu devices, but this node has 1; set resources.devices "
        "to at most 1"}},
  };
}

TEST(PlanTest, Placements) {
  for (const Case& test : Placements()) {
    EXPECT_EQ(Describe(MakePlan(test.snapshot)), test.expected) << test.name;
  }
}

TEST(PlanTest, Waits) {
  for (const Case& test : Waits()) {
    EXPECT_EQ(Describe(MakePlan(test.snapshot)), test.expected) << test.name;
  }
}

TEST(PlanTest, Impossibles) {
  for (const Case& test : Impossibles()) {
    EXPECT_EQ(Describe(MakePlan(test.snapshot)), test.expected) << test.name;
  }
}

TEST(PlanTest, AnImpossibleJobCarriesTheReasonAndItsNumbers) {
  const Plan plan = MakePlan({{TestQueuedJob("a", 0, 1, 3)}, TestDevices("cpu", 2)});
  ASSERT_EQ(plan.impossible.size(), 1u);
  const absl::Status& why = plan.impossible[0].why;
  EXPECT_EQ(why.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(why), Reason::kDeviceCountImpossible);
  EXPECT_EQ(MetadataOf(why, "job"), "jobs/a");
  EXPECT_EQ(MetadataOf(why, "devices"), "3");
  EXPECT_EQ(MetadataOf(why, "available"), "2");
  EXPECT_EQ(MetadataOf(why, "device_type"), "cpu");
}

TEST(PlanTest, TheWaitingAreInQueueOrder) {
  const Plan plan = MakePlan(
      {{TestQueuedJob("c", 0, 1, 1), TestQueuedJob("a", 0, 3, 1), TestQueuedJob("b", 0, 2, 1)},
       {{"cpu0", "cpu", "jobs/x"}}});
  std::vector<std::string> uids;
  for (const Waiting& job : plan.waiting) uids.push_back(job.job_uid);
  EXPECT_THAT(uids, ElementsAre("uid-a", "uid-b", "uid-c"));
  EXPECT_THAT(plan.assignments, IsEmpty());
}

}  // namespace
}  // namespace traind::scheduler
