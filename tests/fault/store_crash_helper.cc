// Writes to a store until it is done or dies at an armed fault point.
//
//   store_crash_helper DATABASE JOBS
//
// For each job it makes three calls: create (with the request id `request-<n>`), place, report two
// steps. After each call that returned, one line goes to stdout: the job's id and its revision.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/store/sqlite_job_store.h"
#include "tests/support/test_jobs.h"

namespace traind {
namespace {

void Acknowledge(const v1::Job& job) {
  const std::string line = absl::StrCat(job.uid(), " ", job.revision(), "\n");
  if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::exit(3);
}

absl::Status WriteJob(store::SqliteJobStore& store, int number) {
  const std::string id = absl::StrCat("j", number);
  const store::RequestId request{absl::StrCat("request-", number), 7, TestTime()};
  const auto created = store.CreateJob(jobs::QueuedJob(TestJob(id), TestTime(number)), request);
  if (!created.ok()) return created.status();
  Acknowledge(created->job);
  jobs::JobRecord record{created->job, {}};
  const auto placed = jobs::PlaceJob(record, {"attempt-" + id, "nodes/n", {"cpu0"}}, TestTime());
  auto stored = store.Commit(*placed);
  if (!stored.ok()) return stored.status();
  Acknowledge(*stored);
  jobs::MergeUpdate(*placed, *stored, record);
  const auto stepped = jobs::ApplyReports(record, "attempt-" + id, 1,
                                          {StepReport(1, 1), StepReport(2, 2)}, TestTime());
  stored = store.Commit(**stepped);
  if (!stored.ok()) return stored.status();
  Acknowledge(*stored);
  return absl::OkStatus();
}

int Main(const std::string& path, int job_count) {
  const auto store = store::SqliteJobStore::Open({path, absl::Seconds(5), 0});
  if (!store.ok()) return 2;
  for (int number = 1; number <= job_count; ++number) {
    if (!WriteJob(**store, number).ok()) return 4;
  }
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  return argc == 3 ? traind::Main(argv[1], std::atoi(argv[2])) : 1;
}
