#include "worker/trainer/cpu_info.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/status/errors.h"

namespace traind {
namespace {

TEST(CpuInfoTest, AProcessorWithoutAvx2OrFmaIsRefusedByName) {
  EXPECT_TRUE(CheckCpu({"avx2", "fma"}).ok());
  const absl::Status status = CheckCpu({"fma", "avx512f"});
  EXPECT_EQ(ReasonOf(status), Reason::kLaunchFailed);
  EXPECT_EQ(MetadataOf(status, "missing"), "avx2");
  EXPECT_EQ(MetadataOf(CheckCpu({}), "missing"), "avx2, fma");
}

TEST(CpuInfoTest, ThereIsAtLeastOneCore) { EXPECT_GE(PhysicalCores(), 1); }

}  // namespace
}  // namespace traind
