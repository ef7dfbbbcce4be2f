#include "server/controller/assignment.h"

#include "common/status/errors.h"
#include "gtest/gtest.h"

namespace traind::controller {
namespace {

jobs::JobRecord Record() {
  jobs::JobRecord record;
  record.job.set_name("jobs/a");
  record.job.set_uid("uid-1");
  record.job.mutable_spec()->mutable_base_model()->set_path("/m");
  record.job.mutable_attempt()->add_devices("cpu0");
  record.job.mutable_attempt()->add_devices("cpu1");
  record.attempts.resize(2);
  record.attempts[1].set_uid("attempt-2");
  record.attempts[1].set_number(2);
  record.attempts[1].set_fencing_token(9);
  return record;
}

TEST(AssignmentTest, SaysWhatTheNewestAttemptNeeds) {
  const auto assignment =
      MakeAssignment(Record(), {"/state", "unix:/state/worker.sock", 3, absl::Milliseconds(1500)});
  ASSERT_TRUE(assignment.ok()) << assignment.status();
  EXPECT_EQ(assignment->job_name(), "jobs/a");
  EXPECT_EQ(assignment->attempt(), 2);
  EXPECT_EQ(assignment->attempt_uid(), "attempt-2");
  EXPECT_EQ(assignment->fencing_token(), 9);
  EXPECT_EQ(assignment->spec().base_model().path(), "/m");
  EXPECT_EQ(assignment->daemon_target(), "unix:/state/worker.sock");
  EXPECT_EQ(assignment->attempt_dir(), "/state/jobs/uid-1/attempts/2");
  EXPECT_EQ(assignment->checkpoints_dir(), "/state/jobs/uid-1/checkpoints");
  EXPECT_EQ(assignment->adapter_dir(), "/state/jobs/uid-1/adapter");
  EXPECT_EQ(assignment->devices_size(), 2);
  EXPECT_EQ(assignment->threads(), 6) << "3 for each device";
  EXPECT_EQ(assignment->heartbeat_interval().seconds(), 1);
  EXPECT_EQ(assignment->heartbeat_interval().nanos(), 500'000'000);
}

TEST(AssignmentTest, AnUnusableUidIsADefect) {
  jobs::JobRecord record = Record();
  record.job.set_uid("../../etc");
  EXPECT_EQ(ReasonOf(MakeAssignment(record, {"/state", "", 1}).status()), Reason::kBug);
}

}  // namespace
}  // namespace traind::controller
