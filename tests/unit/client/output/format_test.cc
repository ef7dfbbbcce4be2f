#include "client/output/format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "client/output/error_text.h"
#include "client/output/json.h"
#include "client/output/progress.h"
#include "client/output/table.h"
#include "common/status/errors.h"
#include "tests/support/test_streams.h"
#include "traind/v1/event.pb.h"

namespace traind::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FormatTest, SizesTimesAndCounts) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(int64_t{28} << 30), "28.0 GiB");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(4884480), "4,884,480");
  EXPECT_EQ(FormatCount(-1000), "-1,000");
  EXPECT_EQ(ShortDuration(absl::ZeroDuration()), "0s");
  EXPECT_EQ(ShortDuration(absl::Milliseconds(400)), "0.4s");
  EXPECT_EQ(ShortDuration(absl::Seconds(151)), "2m31s");
  EXPECT_EQ(ShortDuration(absl::Seconds(59.7)), "1m00s");
  EXPECT_EQ(ShortDuration(absl::Minutes(185)), "3h05m");
  EXPECT_EQ(ShortDuration(absl::Hours(50)), "2d2h");
  EXPECT_EQ(ShortDuration(absl::InfiniteDuration()), "?");
}

TEST(FormatTest, NumbersThatAreNotFiniteHaveAName) {
  EXPECT_EQ(FormatNumber(3.14159), "3.142");
  EXPECT_EQ(FormatNumber(std::nan("")), "NaN");
  EXPECT_EQ(FormatNumber(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(FormatTest, TextsAreCutAtACharacter) {
  EXPECT_EQ(DisplayWidth("määr"), 4);
  EXPECT_EQ(FitWidth("määritä", 4), "mää…");
  EXPECT_EQ(FitWidth("abc", 3), "abc");
  EXPECT_EQ(FitWidth("abc", 0), "");
}

TEST(FormatTest, LinesBreakAtSpaces) {
  EXPECT_THAT(WrapWords("a portable light source", 10),
              ElementsAre("a portable", "light", "source"));
  EXPECT_THAT(WrapWords("incomprehensible a", 5), ElementsAre("incomprehensible", "a"));
  EXPECT_THAT(WrapWords("", 5), ElementsAre(""));
}

TEST(FormatTest, ControlCharactersCannotReachTheTerminal) {
  EXPECT_EQ(OneLine("a\nb\x1b[31mc\x7f"), "a b[31mc");
}

TEST(ProgressTest, BarsAndCurves) {
  EXPECT_EQ(ProgressBar(1, 4, 8), "██░░░░░░");
  EXPECT_EQ(ProgressBar(9, 4, 4), "████");
  EXPECT_EQ(ProgressBar(1, 0, 8), "");
  EXPECT_EQ(Sparkline({1, 2, 3, 4, 5, 6, 7, 8}, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(Sparkline({1, 1, 8, 8}, 2), "▁█");
  EXPECT_EQ(Sparkline({1, std::nan(""), 8}, 8), "▁×█");
  EXPECT_EQ(Sparkline({}, 8), "");
}

TEST(TableTest, AlignsAndCutsOnATerminalOnly) {
  Table table({"NAME", "STATE"});
  table.AddRow({"jobs/long-name", "RUNNING"});
  table.AddRow({"jobs/a", ""});
  TestStreams pipe;
  table.Print(pipe.io);
  EXPECT_EQ(pipe.out.str(),
            "NAME            STATE\n"
            "jobs/long-name  RUNNING\n"
            "jobs/a          -\n");
  TestStreams terminal;
  terminal.io.out_is_terminal = true;
  terminal.io.colour = true;
  terminal.io.width = 19;
  table.Print(terminal.io);
  EXPECT_EQ(terminal.out.str(),
            "NAME            ST…\n"
            "jobs/long-name  RU…\n"
            "jobs/a          -\n");
  terminal.out.str("");
  terminal.io.width = 80;
  table.Print(terminal.io);
  EXPECT_THAT(terminal.out.str(), HasSubstr("\x1b[36mRUNNING\x1b[0m\n"));
}

TEST(JsonTest, KeepsFieldNamesAndIsJsonWithNaN) {
  v1::Event event;
  event.set_sequence(3);
  event.mutable_step()->set_loss(std::nan(""));
  event.mutable_step()->set_grad_norm(std::numeric_limits<double>::infinity());
  event.mutable_step()->set_learning_rate(0.5);
  TestStreams streams;
  ASSERT_TRUE(PrintJson(streams.io, event, JsonStyle::kOneLine).ok());
  EXPECT_EQ(streams.out.str(),
            "{\"sequence\":\"3\",\"step\":{\"loss\":\"NaN\",\"learning_rate\":0.5,"
            "\"grad_norm\":\"Infinity\"}}\n");
}

TEST(ErrorTextTest, ShowsFieldsReasonAndHint) {
  const absl::Status fields = FieldErrors(
      {{"lora.r", "must be at least 1; got 0"}, {"priority", "must be at most 100; got 101"}});
  EXPECT_EQ(ErrorText(fields, false),
            "error: some fields are wrong\n"
            "  lora.r: must be at least 1; got 0\n"
            "  priority: must be at most 100; got 101\n"
            "reason: INVALID_FIELD\n");
  const absl::Status missing = Error(absl::StatusCode::kNotFound, Reason::kJobNotFound,
                                     "no job `jobs/a`", {{"job", "jobs/a"}});
  EXPECT_EQ(ErrorText(missing, true),
            "error: no job `jobs/a`\n"
            "reason: JOB_NOT_FOUND\n"
            "hint: `trainctl job list` shows the jobs that exist\n"
            "code: NOT_FOUND\n"
            "  job=jobs/a\n");
}

}  // namespace
}  // namespace traind::client
