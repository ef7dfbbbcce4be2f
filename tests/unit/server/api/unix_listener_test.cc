#include "server/api/unix_listener.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"

namespace traind::api {
namespace {

// Connections that were accepted. Thread-safe.
class Accepted {
 public:
  ~Accepted() {
    for (const int descriptor : descriptors_) close(descriptor);
  }
  void Add(int descriptor, uid_t uid) {
    absl::MutexLock lock(&mutex_);
    descriptors_.push_back(descriptor);
    users_.push_back(uid);
  }
  std::vector<uid_t> users() {
    absl::MutexLock lock(&mutex_);
    return users_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<int> descriptors_;
  std::vector<uid_t> users_ ABSL_GUARDED_BY(mutex_);
};

class UnixListenerTest : public testing::Test {
 protected:
  // A connected socket, or -1.
  int Connect() {
    const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
      return descriptor;
    }
    close(descriptor);
    return -1;
  }

  TempDir folder_;
  std::string path_ = folder_.File("deep/er/s.sock");
};

TEST_F(UnixListenerTest, TellsTheUserOfEachConnection) {
  Accepted accepted;
  const auto listener = UnixListener::Listen(path_, 0600).value();
  const int early = Connect();
  EXPECT_GE(early, 0) << "a connection before StartAccepting waits";
  listener->StartAccepting([&](int descriptor, uid_t uid) { accepted.Add(descriptor, uid); });
  const int late = Connect();
  EXPECT_TRUE(WaitUntil([&] { return accepted.users().size() == 2; }));
  EXPECT_EQ(accepted.users()[0], getuid());
  close(early);
  close(late);
}

TEST_F(UnixListenerTest, TheFileHasTheModeWhateverTheUmask) {
  const mode_t before = umask(0);
  const auto listener = UnixListener::Listen(path_, 0640);
  umask(before);
  struct stat info;
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
}

TEST_F(UnixListenerTest, StopRemovesTheFileAndMayBeCalledTwice) {
  const auto listener = UnixListener::Listen(path_, 0600).value();
  listener->StartAccepting([](int descriptor, uid_t) { close(descriptor); });
  listener->Stop();
  listener->Stop();
  EXPECT_FALSE(FileExists(path_));
}

TEST_F(UnixListenerTest, AFileThatSomebodyElsePutThereIsKept) {
  auto listener = UnixListener::Listen(path_, 0600).value();
  ASSERT_TRUE(WriteFileAtomically(path_, "other").ok());
  listener.reset();
  EXPECT_EQ(ReadFile(path_).value(), "other");
}

TEST_F(UnixListenerTest, TwoCannotListenOnOnePath) {
  const auto first = UnixListener::Listen(path_, 0600).value();
  const auto second = UnixListener::Listen(path_, 0600);
  EXPECT_EQ(ReasonOf(second.status()), Reason::kAddressInUse);
  EXPECT_EQ(MetadataOf(second.status(), "address"), path_);
  const int still_there = Connect();
  EXPECT_GE(still_there, 0);
  close(still_there);
}

TEST_F(UnixListenerTest, APathThatIsTooLongOrCannotBeMadeIsNamed) {
  EXPECT_EQ(ReasonOf(UnixListener::Listen("/tmp/" + std::string(120, 's'), 0600).status()),
            Reason::kConfigInvalid);
  EXPECT_EQ(ReasonOf(UnixListener::Listen("/proc/none/s.sock", 0600).status()),
            Reason::kConfigInvalid);
}

}  // namespace
}  // namespace traind::api
