#include "server/api/environment_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/os/file.h"
#include "tests/support/temp_dir.h"

namespace traind::api {
namespace {

using ::testing::HasSubstr;
using Check = v1::EnvironmentCheck;

class EnvironmentChecksTest : public testing::Test {
 protected:
  std::string Script(const std::string& body) {
    const std::string path = folder_.File("worker");
    EXPECT_TRUE(WriteFileAtomically(path, "#!/bin/sh\n" + body + "\n").ok());
    EXPECT_EQ(chmod(path.c_str(), 0755), 0);
    return path;
  }

  TempDir folder_;
};

TEST_F(EnvironmentChecksTest, AWorkerThatPassesItsCheckIsOk) {
  const Check check =
      CheckWorkerBinary(Script("[ \"$1\" = --check ] && echo avx2 fp32"), absl::Seconds(30));
  EXPECT_EQ(check.result(), Check::OK) << check.message();
  EXPECT_THAT(check.message(), HasSubstr("avx2 fp32"));
}

TEST_F(EnvironmentChecksTest, AWorkerThatFailsSaysWhy) {
  const Check check =
      CheckWorkerBinary(Script("echo libtorch_cpu.so is missing >&2; exit 3"), absl::Seconds(30));
  EXPECT_EQ(check.result(), Check::FAILED);
  EXPECT_THAT(check.message(), HasSubstr("code 3"));
  EXPECT_THAT(check.message(), HasSubstr("libtorch_cpu.so is missing"));
}

TEST_F(EnvironmentChecksTest, AWorkerThatHangsIsEnded) {
  const Check check = CheckWorkerBinary(Script("exec sleep 600"), absl::Milliseconds(50));
  EXPECT_EQ(check.result(), Check::FAILED);
  EXPECT_THAT(check.message(), HasSubstr("did not end within 50ms"));
}

TEST_F(EnvironmentChecksTest, AMissingWorkerIsNamed) {
  const Check check = CheckWorkerBinary("/nowhere/traind-worker", absl::Seconds(30));
  EXPECT_EQ(check.result(), Check::FAILED);
  EXPECT_THAT(check.message(), HasSubstr("/nowhere/traind-worker"));
}

TEST_F(EnvironmentChecksTest, OutputThatIsNoTextIsShownSafely) {
  const Check check = CheckWorkerBinary(
      Script("printf '\\377\\376'; head -c 100000 /dev/zero; exit 1"), absl::Seconds(30));
  EXPECT_EQ(check.result(), Check::FAILED);
  EXPECT_LE(check.message().size(), 1000u);
  Check back;
  EXPECT_TRUE(back.ParseFromString(check.SerializeAsString())) << "valid UTF-8";
}

TEST_F(EnvironmentChecksTest, AStateDirIsMeasured) {
  EXPECT_THAT(CheckStateDir(folder_.path()).message(), HasSubstr("GiB free"));
  const Check missing = CheckStateDir("/nowhere");
  EXPECT_EQ(missing.result(), Check::FAILED);
  EXPECT_THAT(missing.message(), HasSubstr("/nowhere"));
}

TEST_F(EnvironmentChecksTest, AMissingRootIsAWarning) {
  EXPECT_EQ(CheckAllowedRoot(folder_.path()).result(), Check::OK);
  EXPECT_EQ(CheckAllowedRoot("/nowhere").result(), Check::WARNING);
}

TEST_F(EnvironmentChecksTest, NoDeviceFails) {
  EXPECT_EQ(CheckDeviceCount(1).result(), Check::OK);
  EXPECT_EQ(CheckDeviceCount(0).result(), Check::FAILED);
}

TEST_F(EnvironmentChecksTest, AllChecksComeInOrder) {
  config::v1::TraindConfig config;
  config.set_worker_binary("/bin/true");
  config.set_state_dir(folder_.path());
  config.add_allowed_roots(folder_.path());
  config.add_allowed_roots("/nowhere");
  std::string names;
  for (const Check& check : CheckEnvironment(config, 1)) names += check.name() + " ";
  EXPECT_EQ(names, "worker_binary state_dir allowed_root allowed_root devices ");
}

}  // namespace
}  // namespace traind::api
