#include "worker/session/report_spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind {
namespace {

using worker::v1::Report;

class ReportSpoolTest : public testing::Test {
 protected:
  ReportSpoolTest()
      : path_(absl::StrCat(testing::TempDir(), "spool.", ::getpid(), ".",
                           testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove(path_);
  }
  ~ReportSpoolTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<ReportSpool> Open(int64_t trim_bytes = 1 << 20) {
    auto spool = ReportSpool::Open(path_, trim_bytes);
    EXPECT_TRUE(spool.ok()) << spool.status();
    return *std::move(spool);
  }

  static Report StepReport(int64_t step) {
    Report report;
    report.mutable_step()->set_step(step);
    return report;
  }

  static void AppendSteps(ReportSpool& spool, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      ASSERT_EQ(spool.Append(StepReport(step)).value(), step);
    }
  }

  static void ExpectSteps(ReportSpool& spool, int64_t after, int64_t first, int64_t last) {
    const auto reports = spool.ReadAfter(after, 1000);
    ASSERT_TRUE(reports.ok()) << reports.status();
    ASSERT_EQ(static_cast<int64_t>(reports->size()), last - first + 1);
    for (const Report& report : *reports) {
      EXPECT_EQ(report.number(), first);
      EXPECT_EQ(report.step().step(), first++);
    }
  }

  void WriteAt(int64_t offset, char byte) {
    const int file = ::open(path_.c_str(), O_WRONLY);
    ASSERT_EQ(::pwrite(file, &byte, 1, offset), 1);
    ::close(file);
  }

  const std::string path_;
};

TEST_F(ReportSpoolTest, NumbersFromOneAndReadsFromAnyNumber) {
  auto spool = Open();
  EXPECT_EQ(spool->last_number(), 0);
  AppendSteps(*spool, 1, 10);
  EXPECT_EQ(spool->last_number(), 10);
  ExpectSteps(*spool, 0, 1, 10);
  ExpectSteps(*spool, 7, 8, 10);
  ExpectSteps(*spool, 2, 3, 10);
  ExpectSteps(*spool, 10, 11, 10);
  EXPECT_EQ(spool->ReadAfter(4, 2)->size(), 2u);
  EXPECT_EQ(spool->ReadAfter(6, 2)->front().number(), 7);
}

TEST_F(ReportSpoolTest, ContinuesAfterACrashOfTheProcess) {
  AppendSteps(*Open(), 1, 3);
  auto spool = Open();
  AppendSteps(*spool, 4, 5);
  ExpectSteps(*spool, 0, 1, 5);
}

TEST_F(ReportSpoolTest, WritesOverATornLastFrame) {
  for (const int64_t cut : {1, 7, 17}) {
    std::filesystem::remove(path_);
    AppendSteps(*Open(), 1, 3);
    std::filesystem::resize_file(path_,
                                 std::filesystem::file_size(path_) - static_cast<uintmax_t>(cut));
    auto spool = Open();
    EXPECT_EQ(spool->last_number(), 2) << cut;
    AppendSteps(*spool, 3, 4);
    ExpectSteps(*spool, 0, 1, 4);
  }
}

TEST_F(ReportSpoolTest, ADamagedByteEndsTheReadableReports) {
  AppendSteps(*Open(), 1, 3);
  const auto frame = static_cast<int64_t>(std::filesystem::file_size(path_)) / 3;
  for (const int64_t offset : {frame + 1, frame + 5, frame + 9, 2 * frame - 1}) {
    const std::string before = ReadFile(path_).value();
    WriteAt(offset, static_cast<char>(before[static_cast<size_t>(offset)] ^ 0x5a));
    EXPECT_EQ(Open()->last_number(), 1) << offset;
    WriteAt(offset, before[static_cast<size_t>(offset)]);
  }
  EXPECT_EQ(Open()->last_number(), 3);
}

TEST_F(ReportSpoolTest, AnAcknowledgedLargeFileIsEmptiedAndCountingGoesOn) {
  {
    auto spool = Open(/*trim_bytes=*/64);
    AppendSteps(*spool, 1, 10);
    spool->Acknowledge(9);
    ExpectSteps(*spool, 9, 10, 10);
    spool->Acknowledge(10);
    EXPECT_LE(std::filesystem::file_size(path_), 16u);
    ExpectSteps(*spool, 10, 11, 10);
  }
  auto spool = Open(64);
  EXPECT_EQ(spool->last_number(), 10);
  AppendSteps(*spool, 11, 12);
  ExpectSteps(*spool, 10, 11, 12);
}

TEST_F(ReportSpoolTest, ReportsWaitInMemoryWhileTheDiskIsFull) {
  auto full = ReportSpool::Open("/dev/full");
  ASSERT_TRUE(full.ok()) << full.status();
  AppendSteps(**full, 1, 3);
  EXPECT_EQ(ReasonOf((*full)->Sync()), Reason::kDiskFull);
  ExpectSteps(**full, 0, 1, 3);
  ExpectSteps(**full, 2, 3, 3);
}

TEST_F(ReportSpoolTest, ADiskThatStaysFullDropsReportsBeforeTheyGetANumberButNeverTheLast) {
  auto full = ReportSpool::Open("/dev/full");
  ASSERT_TRUE(full.ok()) << full.status();
  Report large;
  large.mutable_notice()->set_message(std::string(1 << 20, 'x'));
  int64_t kept = 0;
  absl::Status dropped;
  while (dropped.ok() && kept < 100) {
    const auto number = (*full)->Append(large);
    if (number.ok()) kept = *number;
    dropped = number.status();
  }
  EXPECT_EQ(ReasonOf(dropped), Reason::kDiskFull);
  Report finished;
  finished.mutable_finished()->set_result(worker::v1::Finished::FAILED);
  EXPECT_EQ((*full)->Append(finished).value(), kept + 1);
}

TEST_F(ReportSpoolTest, AFolderThatIsMissingIsAnErrorWithThePath) {
  const auto spool = ReportSpool::Open("/no/such/folder/spool");
  ASSERT_FALSE(spool.ok());
  EXPECT_EQ(ReasonOf(spool.status()), Reason::kOutputFailed);
  EXPECT_EQ(MetadataOf(spool.status(), "path"), "/no/such/folder/spool");
}

}  // namespace
}  // namespace traind
