#include "server/artifacts/job_paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"

namespace traind::artifacts {
namespace {

TEST(JobPathsTest, LayOutTheStateFolder) {
  const auto paths = JobPaths::ForJob("/state", "uid-1");
  ASSERT_TRUE(paths.ok());
  EXPECT_EQ(paths->job_dir(), "/state/jobs/uid-1");
  EXPECT_EQ(paths->attempt_dir(2), "/state/jobs/uid-1/attempts/2");
  EXPECT_EQ(paths->assignment_file(2), "/state/jobs/uid-1/attempts/2/assignment.json");
  EXPECT_EQ(paths->log_file(2), "/state/jobs/uid-1/attempts/2/worker.log");
  EXPECT_EQ(paths->checkpoints_dir(), "/state/jobs/uid-1/checkpoints");
  EXPECT_EQ(paths->checkpoint_dir(40), "/state/jobs/uid-1/checkpoints/checkpoint-40");
  EXPECT_EQ(paths->adapter_dir(), "/state/jobs/uid-1/adapter");
}

TEST(JobPathsTest, AUidThatCouldLeaveTheFolderIsABug) {
  for (const std::string uid : {"", ".", "..", "../x", "a/b", "/etc", "a.b", "a b", "a\nb"}) {
    EXPECT_EQ(ReasonOf(JobPaths::ForJob("/state", uid).status()), Reason::kBug) << uid;
  }
  EXPECT_FALSE(JobPaths::ForJob("/state", std::string("a\0b", 3)).ok());
  EXPECT_FALSE(JobPaths::ForJob("/state", std::string(65, 'a')).ok());
  EXPECT_TRUE(JobPaths::ForJob("/state", "7b0c1d9e-2f3a-4b5c-8d6e-9f0a1b2c3d4e").ok());
}

class JobFolderTest : public testing::Test {
 protected:
  JobPaths Paths(const std::string& uid) { return *JobPaths::ForJob(state_.path(), uid); }

  TempDir state_;
};

TEST_F(JobFolderTest, CreatesWhatAnAttemptNeedsAgainAndAgain) {
  const JobPaths paths = Paths("a");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(CreateAttemptFolders(paths, 3).ok());
  EXPECT_TRUE(FileExists(paths.attempt_dir(3)));
  EXPECT_TRUE(FileExists(paths.checkpoints_dir()));
  EXPECT_FALSE(FileExists(paths.adapter_dir()));
}

TEST_F(JobFolderTest, RemovesTheJobAndNoOther) {
  ASSERT_TRUE(CreateAttemptFolders(Paths("a"), 1).ok());
  ASSERT_TRUE(CreateAttemptFolders(Paths("b"), 1).ok());
  ASSERT_TRUE(WriteFileAtomically(Paths("a").log_file(1), "x").ok());
  ASSERT_TRUE(RemoveJobFolder(Paths("a")).ok());
  EXPECT_EQ(*ListDirectory(state_.File("jobs")), std::vector<std::string>{"b"});
}

TEST_F(JobFolderTest, RemovingWhatIsNotThereIsNoError) {
  EXPECT_TRUE(RemoveJobFolder(Paths("a")).ok());
}

TEST_F(JobFolderTest, RemovesALinkWithoutFollowingIt) {
  TempDir elsewhere;
  ASSERT_TRUE(WriteFileAtomically(elsewhere.File("precious"), "x").ok());
  ASSERT_TRUE(CreateAttemptFolders(Paths("a"), 1).ok());
  const std::string link = Paths("a").attempt_dir(1) + "/link";
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), link.c_str()), 0);
  ASSERT_TRUE(RemoveJobFolder(Paths("a")).ok());
  EXPECT_TRUE(FileExists(elsewhere.File("precious")));
}

TEST_F(JobFolderTest, ClearsWhatAnInterruptedRemovalLeft) {
  ASSERT_TRUE(CreateAttemptFolders(Paths("b"), 1).ok());
  ASSERT_TRUE(CreateDirectories(state_.File("jobs/a.removed/attempts/1")).ok());
  ASSERT_TRUE(RemoveLeftovers(state_.path()).ok());
  EXPECT_EQ(*ListDirectory(state_.File("jobs")), std::vector<std::string>{"b"});
}

TEST_F(JobFolderTest, AFreshStateFolderHasNoLeftovers) {
  EXPECT_TRUE(RemoveLeftovers(state_.path()).ok());
}

}  // namespace
}  // namespace traind::artifacts
