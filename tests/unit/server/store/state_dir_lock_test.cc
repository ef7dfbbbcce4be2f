#include "server/store/state_dir_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"

namespace traind::store {
namespace {

using ::testing::HasSubstr;

TEST(StateDirLockTest, TheSecondHolderIsToldWhoTheFirstIs) {
  const TempDir folder;
  const auto lock = StateDirLock::Acquire(folder.path());
  ASSERT_TRUE(lock.ok()) << lock.status();
  const absl::Status status = StateDirLock::Acquire(folder.path()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), Reason::kStateDirLocked);
  EXPECT_EQ(MetadataOf(status, "pid"), absl::StrCat(::getpid()));
  EXPECT_EQ(MetadataOf(status, "state_dir"), folder.path());
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat(::getpid())));
}

TEST(StateDirLockTest, IsFreeAgainAfterwards) {
  const TempDir folder;
  { ASSERT_TRUE(StateDirLock::Acquire(folder.path()).ok()); }
  EXPECT_TRUE(StateDirLock::Acquire(folder.path()).ok());
}

TEST(StateDirLockTest, MovesWithItsOwner) {
  const TempDir folder;
  std::optional<StateDirLock> owner;
  {
    auto lock = StateDirLock::Acquire(folder.path());
    owner.emplace(*std::move(lock));
  }
  EXPECT_FALSE(StateDirLock::Acquire(folder.path()).ok());
  owner.reset();
  EXPECT_TRUE(StateDirLock::Acquire(folder.path()).ok());
}

TEST(StateDirLockTest, AFileThatADeadDaemonLeftIsNoHindrance) {
  const TempDir folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("traind.lock"), "999999999999 and more\n").ok());
  const auto lock = StateDirLock::Acquire(folder.path());
  ASSERT_TRUE(lock.ok());
  EXPECT_EQ(*ReadFile(folder.File("traind.lock")), absl::StrCat(::getpid(), "\n"));
}

TEST(StateDirLockTest, CreatesTheFolder) {
  const TempDir folder;
  EXPECT_TRUE(StateDirLock::Acquire(folder.File("a/b")).ok());
  EXPECT_TRUE(FileExists(folder.File("a/b/traind.lock")));
}

TEST(StateDirLockTest, TwoFoldersAreApart) {
  const TempDir a;
  const TempDir b;
  const auto lock = StateDirLock::Acquire(a.path());
  EXPECT_TRUE(StateDirLock::Acquire(b.path()).ok());
}

TEST(StateDirLockTest, AFileInPlaceOfTheFolderIsAnError) {
  const TempDir folder;
  ASSERT_TRUE(WriteFileAtomically(folder.File("state"), "x").ok());
  EXPECT_FALSE(StateDirLock::Acquire(folder.File("state")).ok());
}

}  // namespace
}  // namespace traind::store
