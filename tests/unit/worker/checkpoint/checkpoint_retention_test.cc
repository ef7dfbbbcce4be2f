#include "worker/checkpoint/checkpoint_retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// What is left after saving `saves` one after the other.
std::vector<int64_t> Left(const std::vector<int64_t>& saves, int64_t keep_last) {
  std::vector<int64_t> there;
  for (const int64_t step : saves) {
    there.push_back(step);
    for (const int64_t removed : CheckpointsToRemove(there, step, keep_last)) {
      std::erase(there, removed);
    }
  }
  return there;
}

TEST(CheckpointRetentionTest, KeepsTheNewestBySaveStep) {
  EXPECT_THAT(Left({200, 400, 600, 800, 1000}, 3), ElementsAre(600, 800, 1000));
  EXPECT_THAT(Left({900, 1000, 1100}, 2), ElementsAre(1000, 1100));
  EXPECT_THAT(Left({100, 200, 300}, 1), ElementsAre(300));
}

TEST(CheckpointRetentionTest, ZeroKeepsAll) {
  EXPECT_THAT(Left({1, 2, 3}, 0), ElementsAre(1, 2, 3));
}

TEST(CheckpointRetentionTest, TheOneJustSavedStaysWhateverItsStep) {
  EXPECT_THAT(CheckpointsToRemove({500, 600, 700, 100}, 100, 1), ElementsAre(500, 600, 700));
  EXPECT_THAT(CheckpointsToRemove({500, 600, 700, 100}, 100, 2), ElementsAre(500, 600));
  EXPECT_THAT(CheckpointsToRemove({100}, 100, 1), IsEmpty());
}

TEST(CheckpointRetentionTest, FolderNamesAreExact) {
  int64_t step = -1;
  EXPECT_EQ(CheckpointFolderName(40), "checkpoint-40");
  EXPECT_TRUE(ParseCheckpointFolderName("checkpoint-40", &step));
  EXPECT_EQ(step, 40);
  for (const char* name : {"checkpoint-", "checkpoint-040", "checkpoint--1", "checkpoint-4x",
                           ".tmp-checkpoint-4-1", "checkpoint-99999999999999999999"}) {
    EXPECT_FALSE(ParseCheckpointFolderName(name, &step)) << name;
  }
}

}  // namespace
}  // namespace traind
