#include "server/api/peer_registry.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace traind::api {
namespace {

int OpenSomething() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

bool IsOpen(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

TEST(PeerRegistryTest, ANumberTellsItsUser) {
  PeerRegistry peers;
  const int descriptor = peers.Register(OpenSomething(), 7);
  EXPECT_EQ(peers.UserOf(absl::StrCat("fd:", descriptor)), uid_t{7});
  EXPECT_EQ(peers.UserOf("fd:12345"), std::nullopt);
  EXPECT_EQ(peers.UserOf("unix:"), std::nullopt);
  EXPECT_EQ(peers.UserOf("fd:"), std::nullopt);
  close(descriptor);
}

TEST(PeerRegistryTest, AReusedNumberOfTheSameUserIsKept) {
  PeerRegistry peers;
  const int first = peers.Register(OpenSomething(), 7);
  close(first);
  const int again = OpenSomething();
  EXPECT_EQ(peers.Register(again, 7), again);
  close(again);
}

TEST(PeerRegistryTest, AReusedNumberIsNeverAnotherUsers) {
  PeerRegistry peers;
  const int first = peers.Register(OpenSomething(), 7);
  close(first);
  const int reused = OpenSomething();
  ASSERT_EQ(reused, first) << "the system gives the lowest free number";
  const int moved = peers.Register(reused, 8);
  EXPECT_NE(moved, first);
  EXPECT_TRUE(IsOpen(moved));
  EXPECT_FALSE(IsOpen(reused));
  EXPECT_EQ(peers.UserOf(absl::StrCat("fd:", first)), uid_t{7}) << "for a late call of the first";
  EXPECT_EQ(peers.UserOf(absl::StrCat("fd:", moved)), uid_t{8});
  close(moved);
}

TEST(PeerRegistryTest, WithoutANumberLeftTheConnectionIsClosed) {
  PeerRegistry peers;
  const int first = peers.Register(OpenSomething(), 7);
  close(first);
  const int reused = OpenSomething();
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = static_cast<rlim_t>(reused) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_EQ(peers.Register(reused, 8), -1);
  EXPECT_FALSE(IsOpen(reused));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace traind::api
