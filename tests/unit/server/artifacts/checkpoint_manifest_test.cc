#include "server/artifacts/checkpoint_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status/errors.h"
#include "tests/support/test_checkpoints.h"

namespace traind::artifacts {
namespace {

const char kPath[] = "/c/manifest.json";

std::string Good() { return ManifestJson(40, {{"a.bin", "AAAA"}, {"b.bin", ""}}); }

TEST(CheckpointManifestTest, ReadsEveryField) {
  const auto checkpoint = ParseManifest(Good(), kPath);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ(checkpoint->step(), 40);
  EXPECT_EQ(checkpoint->create_time().seconds(), 1769860800);
  ASSERT_EQ(checkpoint->files_size(), 2);
  EXPECT_EQ(checkpoint->files(0).path(), "a.bin");
  EXPECT_EQ(checkpoint->files(0).size_bytes(), 4);
  EXPECT_EQ(checkpoint->files(0).sha256(),
            "63c1dd951ffedf6f7fd968ad4efa39b8ed584f162f46e715114ee184f8de9201");
  EXPECT_EQ(checkpoint->files(1).size_bytes(), 0);
}

TEST(CheckpointManifestTest, FieldsOfANewerWriterAreSkipped) {
  const std::string json =
      absl::StrReplaceAll(Good(), {{R"("step":40)", R"("step":40,"optimizer":"adamw_torch")"}});
  EXPECT_TRUE(ParseManifest(json, kPath).ok());
}

TEST(CheckpointManifestTest, EveryFlawIsCorruptAndNamesTheFile) {
  struct Flaw {
    std::string from;
    std::string to;
    std::string message;
  };
  const std::vector<Flaw> flaws = {
      {R"("format_version":1)", R"("format_version":2)", "has another format_version than 1"},
      {R"("format_version":1)", R"("format":1)", "has another format_version than 1"},
      {R"("step":40)", R"("step":-1)", "has no step or no create_time"},
      {R"("step":40)", R"("step":"40")", "has no step or no create_time"},
      {R"("step":40)", R"("step":4.5)", "has no step or no create_time"},
      {"2026-01-31T12:00:00Z", "yesterday", "has no step or no create_time"},
      {R"("files":[)", R"("other":[)", "lists no files"},
      {"a.bin", "../a.bin", "a file's path is not a plain name"},
      {"a.bin", "/etc/passwd", "a file's path is not a plain name"},
      {"a.bin", "..", "a file's path is not a plain name"},
      {"a.bin", ".", "a file's path is not a plain name"},
      {"a.bin", "", "a file's path is not a plain name"},
      {"a.bin", "sub/a.bin", "a file's path is not a plain name"},
      {R"("size_bytes":4)", R"("size_bytes":-4)", "a file has no path, size_bytes or sha256"},
      {R"("size_bytes":4)", R"("size":4)", "a file has no path, size_bytes or sha256"},
      {R"("sha256":"63c1)", R"("sha256":"63)", "a file's sha256 does not have 64 digits"},
  };
  for (const Flaw& flaw : flaws) {
    const std::string json = absl::StrReplaceAll(Good(), {{flaw.from, flaw.to}});
    ASSERT_NE(json, Good()) << flaw.from;
    const absl::Status status = ParseManifest(json, kPath).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << flaw.to;
    EXPECT_EQ(ReasonOf(status), Reason::kCheckpointCorrupt) << flaw.to;
    EXPECT_EQ(MetadataOf(status, "path"), kPath);
    EXPECT_EQ(MetadataOf(status, "problem"), flaw.message) << flaw.to;
  }
}

TEST(CheckpointManifestTest, ACutOffManifestIsNeverGood) {
  const std::string json = Good();
  for (size_t size = 0; size < json.size(); ++size) {
    EXPECT_EQ(ReasonOf(ParseManifest(json.substr(0, size), kPath).status()),
              Reason::kCheckpointCorrupt);
  }
}

TEST(CheckpointManifestTest, OtherJsonIsNoManifest) {
  for (const std::string json : {"null", "[]", "3", "{}", "\"x\"", "\xff\xfe"}) {
    EXPECT_EQ(ReasonOf(ParseManifest(json, kPath).status()), Reason::kCheckpointCorrupt) << json;
  }
}

}  // namespace
}  // namespace traind::artifacts
