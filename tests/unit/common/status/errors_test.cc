#include "common/status/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "common/status/grpc_status.h"
#include "common/status/rpc_status.h"
#include "traind/v1/error_reason.pb.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

TEST(ErrorsTest, CarriesReasonAndMetadata) {
  const absl::Status status = Error(absl::StatusCode::kNotFound, Reason::kJobNotFound,
                                    "no job `jobs/a`", {{"job", "jobs/a"}});
  EXPECT_EQ(ReasonOf(status), Reason::kJobNotFound);
  EXPECT_EQ(MetadataOf(status, "job"), "jobs/a");
  EXPECT_EQ(MetadataOf(status, "other"), "");
}

TEST(ErrorsTest, EveryReasonOfTheProtoHasAnEnumValueOfTheSameNumber) {
  const auto* descriptor = v1::ErrorReason_descriptor();
  for (int i = 0; i < descriptor->value_count(); ++i) {
    const auto reason = static_cast<Reason>(descriptor->value(i)->number());
    EXPECT_EQ(ReasonName(reason), descriptor->value(i)->name());
    EXPECT_EQ(ReasonFromName(descriptor->value(i)->name()), reason);
  }
  EXPECT_EQ(ReasonFromName("NO_SUCH_REASON"), Reason::kUnspecified);
}

TEST(ErrorsTest, FieldErrorsCarryAllFieldsAndSurviveGrpc) {
  const absl::Status status = FieldErrors({{"job.spec.lora.r", "must be at least 1; got 0"},
                                           {"job.priority", "must be at most 100; got 101"}});
  EXPECT_EQ(status.message(),
            "job.spec.lora.r: must be at least 1; got 0 (and 1 more wrong fields)");
  const absl::Status back = FromGrpcStatus(ToGrpcStatus(status));
  EXPECT_EQ(back.code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(FieldViolationsOf(back).size(), 2u);
  EXPECT_EQ(FieldViolationsOf(back)[1].field, "job.priority");
}

TEST(ErrorsTest, ADiskFullErrnoIsDiskFullWhateverTheCaller) {
  const absl::Status status = ErrnoError(ENOSPC, Reason::kOutputFailed, "write", "/x");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kDiskFull);
  EXPECT_EQ(ReasonOf(ErrnoError(EIO, Reason::kOutputFailed, "write", "/x")), Reason::kOutputFailed);
}

TEST(ErrorsTest, ALongMessageIsCutAtACharacter) {
  std::string text(1023, 'a');
  text += "\xC3\xA9 tail";
  const std::string cut = ToRpcStatus(absl::InternalError(text)).message();
  EXPECT_EQ(cut, std::string(1023, 'a'));
}

TEST(ErrorsTest, SafeTextReplacesWhatIsNotUtf8) {
  EXPECT_EQ(SafeText("caf\xC3\xA9", 100), "caf\xC3\xA9");
  EXPECT_EQ(SafeText("a\xFFz", 100), "a?z");
  EXPECT_EQ(SafeText("\xC0\x80", 100), "??") << "overlong";
  EXPECT_EQ(SafeText("\xED\xA0\x80", 100), "???") << "surrogate";
  EXPECT_EQ(SafeText("\xF4\x90\x80\x80", 100), "????") << "above U+10FFFF";
  EXPECT_EQ(SafeText("\xE2\x82", 100), "??") << "cut short";
}

TEST(ErrorsTest, SafeTextCutsAtACharacter) {
  EXPECT_EQ(SafeText("abcdef", 6), "abcdef");
  EXPECT_EQ(SafeText("abcdefg", 6), "abc...");
  EXPECT_EQ(SafeText("ab\xC3\xA9"
                     "defgh",
                     6),
            "ab...");
  EXPECT_EQ(SafeText("\xC3\xA9\xC3\xA9\xC3\xA9", 3), "...");
}

TEST(ErrorsTest, HugeAndBrokenValuesStillTravel) {
  std::vector<FieldViolation> violations;
  for (int i = 0; i < 100; ++i) {
    violations.push_back({std::string(1 << 16, 'f'), std::string(1 << 16, 'd') + "\xFF"});
  }
  const grpc::Status sent = ToGrpcStatus(FieldErrors(violations));
  EXPECT_LT(sent.error_details().size() + sent.error_message().size(), 7000u);
  const absl::Status back = FromGrpcStatus(sent);
  EXPECT_EQ(ReasonOf(back), Reason::kInvalidField);
  EXPECT_FALSE(FieldViolationsOf(back).empty());
}

TEST(ErrorsTest, ContextKeepsTheReason) {
  const absl::Status status =
      WithContext(Error(absl::StatusCode::kInternal, Reason::kBug, "odd"), "while saving");
  EXPECT_EQ(status.message(), "while saving: odd");
  EXPECT_EQ(ReasonOf(status), Reason::kBug);
}

}  // namespace
}  // namespace traind
