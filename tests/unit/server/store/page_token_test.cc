#include "server/store/page_token.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "common/status/errors.h"
#include "traind/storage/v1/storage.pb.h"

namespace traind::store {
namespace {

TEST(PageTokenTest, GoesThereAndBack) {
  const std::string key = "1700000000000000000/uid-\xC3\xA9";
  const absl::StatusOr<std::string> back = DecodePageToken(EncodePageToken(key, 42), 42);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, key);
}

TEST(PageTokenTest, IsSafeInAUrl) {
  for (int i = 0; i < 200; ++i) {
    const std::string token = EncodePageToken(std::string(3, static_cast<char>(i)), 1);
    EXPECT_EQ(token.find_first_of("+/=% "), std::string::npos) << token;
  }
}

TEST(PageTokenTest, OneChangedCharacterNeverCrashes) {
  const std::string token = EncodePageToken("1/u", 42);
  for (size_t i = 0; i < token.size(); ++i) {
    for (const char c : std::string("A9_-%")) {
      std::string damaged = token;
      damaged[i] = c;
      const absl::StatusOr<std::string> key = DecodePageToken(damaged, 42);
      EXPECT_TRUE(key.ok() || ReasonOf(key.status()) == Reason::kBadPageToken);
    }
    EXPECT_EQ(ReasonOf(DecodePageToken(token.substr(0, i), 42).status()), Reason::kBadPageToken);
  }
}

TEST(PageTokenTest, AnotherVersionIsRefused) {
  storage::v1::PageToken token;
  token.set_version(2);
  token.set_last_key("1/u");
  token.set_query_hash(42);
  std::string text;
  absl::WebSafeBase64Escape(token.SerializeAsString(), &text);
  EXPECT_EQ(ReasonOf(DecodePageToken(text, 42).status()), Reason::kBadPageToken);
}

TEST(PageTokenTest, TheMessageSaysWhatToDo) {
  const absl::Status status = DecodePageToken("x", 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MetadataOf(status, "field"), "page_token");
}

TEST(HashQueryTest, DiffersWithEachArgumentButThePage) {
  const std::vector<JobQuery> queries = {
      {50, "", {}, {}},
      {50, "", {v1::Job::QUEUED}, {}},
      {50, "", {v1::Job::RUNNING}, {}},
      {50, "", {v1::Job::QUEUED, v1::Job::RUNNING}, {}},
      {50, "", {}, {{"a", "b"}}},
      {50, "", {}, {{"ab", ""}}},
      {50, "", {}, {{"", "ab"}}},
      {50, "", {}, {{"a", "b"}, {"c", "d"}}},
      {50, "", {v1::Job::QUEUED}, {{"a", "b"}}},
  };
  std::set<uint64_t> hashes;
  for (const JobQuery& query : queries) hashes.insert(HashQuery(query));
  EXPECT_EQ(hashes.size(), queries.size());
  EXPECT_EQ(HashQuery({50, "", {}, {}}), HashQuery({7, "token", {}, {}}));
}

TEST(HashQueryTest, TheOrderOfStatesDoesNotMatter) {
  EXPECT_EQ(HashQuery({50, "", {v1::Job::QUEUED, v1::Job::RUNNING}, {}}),
            HashQuery({50, "", {v1::Job::RUNNING, v1::Job::QUEUED, v1::Job::QUEUED}, {}}));
}

TEST(HashQueryTest, IsTheSameInEveryProcess) {
  EXPECT_EQ(HashQuery({50, "", {v1::Job::QUEUED}, {{"a", "b"}}}),
            0x681e1ad6755f70b1ull);  // FNV-1a of `jobs;1,;1:a1:b`.
}

}  // namespace
}  // namespace traind::store
