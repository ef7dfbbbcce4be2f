#include "server/controller/request_hash.h"

#include "gtest/gtest.h"

namespace traind::controller {
namespace {

v1::CreateJobRequest Request() {
  v1::CreateJobRequest request;
  request.set_job_id("a");
  request.set_request_id("one");
  request.mutable_job()->set_priority(3);
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    (*request.mutable_job()->mutable_labels())[key] = key;
  }
  return request;
}

TEST(RequestHashTest, IsTheSameForTheSameRequestWhateverTheOrderOfItsMaps) {
  v1::CreateJobRequest other = Request();
  auto& labels = *other.mutable_job()->mutable_labels();
  labels.clear();
  for (const char* key : {"f", "e", "d", "c", "b", "a"}) labels[key] = key;
  other.set_request_id("two");
  EXPECT_EQ(HashRequest(Request(), "user:1"), HashRequest(other, "user:1"));
}

TEST(RequestHashTest, DiffersForAnotherBodyNameOrCaller) {
  const uint64_t hash = HashRequest(Request(), "user:1");
  EXPECT_NE(hash, HashRequest(Request(), "user:2"));
  v1::CreateJobRequest other = Request();
  other.set_job_id("b");
  EXPECT_NE(hash, HashRequest(other, "user:1"));
  other = Request();
  other.mutable_job()->set_priority(4);
  EXPECT_NE(hash, HashRequest(other, "user:1"));
}

// It is stored, so it must not change between builds: FNV-1a of nothing but the offset basis.
TEST(RequestHashTest, IsStableOverBuilds) {
  EXPECT_EQ(HashRequest(v1::CreateJobRequest(), ""), 0xcbf29ce484222325u);
  EXPECT_EQ(HashRequest(v1::CreateJobRequest(), "a"), 0xaf63dc4c8601ec8cu);
}

}  // namespace
}  // namespace traind::controller
