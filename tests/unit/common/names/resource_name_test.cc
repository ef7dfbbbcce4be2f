#include "common/names/resource_name.h"

#include <gtest/gtest.h>

#include "common/status/errors.h"

namespace traind {
namespace {

TEST(ResourceNameTest, JobIdsFollowTheirPattern) {
  for (const char* id : {"a", "define-words-2", "z9"}) EXPECT_TRUE(IsJobId(id)) << id;
  for (const char* id : {"", "A", "1a", "a_b", "a/b", "-a", "a b"}) EXPECT_FALSE(IsJobId(id)) << id;
  EXPECT_TRUE(IsJobId(std::string(63, 'a')));
  EXPECT_FALSE(IsJobId(std::string(64, 'a')));
}

TEST(ResourceNameTest, ParsesWhatItMakes) {
  EXPECT_EQ(ParseJobName(JobName("a-1")).value(), "a-1");
  const auto checkpoint = ParseCheckpointName(CheckpointName("jobs/a", "120"));
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_EQ(checkpoint->job_name, "jobs/a");
  EXPECT_EQ(checkpoint->checkpoint_id, "120");
  EXPECT_TRUE(ParseCheckpointName("jobs/a/checkpoints/adapter").ok());
  EXPECT_EQ(AttemptName("jobs/a", 3), "jobs/a/attempts/3");
}

TEST(ResourceNameTest, RefusesOtherForms) {
  for (const char* name : {"", "a", "jobs/", "jobs/A", "jobs/a/attempts/1"}) {
    const auto parsed = ParseJobName(name, "job");
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(FieldViolationsOf(parsed.status())[0].field, "job");
  }
  for (const char* name :
       {"jobs/a/checkpoints/", "jobs/a/checkpoints/../x", "jobs/a/checkpoints/-1"})
    EXPECT_FALSE(ParseCheckpointName(name).ok()) << name;
}

}  // namespace
}  // namespace traind
