// A SqliteJobStore in a folder of its own.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "server/store/sqlite_job_store.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_jobs.h"

namespace traind {

class TestStore {
 public:
  explicit TestStore(int64_t max_pages = 0) : max_pages_(max_pages) { Reopen(); }

  // Closes the database and opens it again, as a restart of the daemon does.
  void Reopen() {
    store_.reset();
    auto opened = store::SqliteJobStore::Open({path(), absl::Seconds(5), max_pages_});
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void Close() { store_.reset(); }

  std::string path() const { return folder_.File("traind.db"); }
  store::SqliteJobStore* operator->() { return store_.get(); }
  store::SqliteJobStore& operator*() { return *store_; }

  // Stores a queued job and returns it.
  v1::Job Create(const std::string& id, absl::Time now = TestTime()) {
    auto created = store_->CreateJob(jobs::QueuedJob(TestJob(id), now), {});
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? created->job : v1::Job();
  }

 private:
  TempDir folder_;
  int64_t max_pages_;
  std::unique_ptr<store::SqliteJobStore> store_;
};

}  // namespace traind
