#include "server/store/commit_queue.h"

#include <algorithm>
#include <utility>

#include "common/os/fault_point.h"
#include "common/status/errors.h"

namespace traind::store {
namespace {

// Bounds how long the first of a group waits for the last.
constexpr size_t kMaxGroup = 256;

}  // namespace

CommitQueue::CommitQueue(std::unique_ptr<Database> database)
    : database_(std::move(database)), thread_([this] { Loop(); }) {}

CommitQueue::~CommitQueue() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

absl::Status CommitQueue::Run(Change change) {
  Entry entry{std::move(change), absl::OkStatus(), false};
  absl::MutexLock lock(&mutex_);
  waiting_.push_back(&entry);
  mutex_.Await(absl::Condition(&entry.done));
  return entry.status;
}

size_t CommitQueue::WaitingForTest() {
  absl::MutexLock lock(&mutex_);
  return waiting_.size();
}

void CommitQueue::Loop() {
  for (std::vector<Entry*> group = TakeGroup(); !group.empty(); group = TakeGroup()) {
    CommitGroup(group);
    absl::MutexLock lock(&mutex_);
    for (Entry* entry : group) entry->done = true;
  }
}

std::vector<CommitQueue::Entry*> CommitQueue::TakeGroup() {
  absl::MutexLock lock(&mutex_);
  const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || !waiting_.empty();
  };
  mutex_.Await(absl::Condition(&has_work));
  const auto end = waiting_.begin() + static_cast<int64_t>(std::min(waiting_.size(), kMaxGroup));
  std::vector<Entry*> group(waiting_.begin(), end);
  waiting_.erase(waiting_.begin(), end);
  return group;
}

void CommitQueue::CommitGroup(const std::vector<Entry*>& group) {
  const absl::Status status = TryGroup(group);
  if (status.ok()) return;
  if (group.size() == 1) {
    group.front()->status = status;
    return;
  }
  for (Entry* entry : group) CommitGroup({entry});
}

absl::Status CommitQueue::TryGroup(const std::vector<Entry*>& group) {
  absl::Status status = database_->Execute("BEGIN IMMEDIATE");
  for (Entry* entry : group) {
    if (status.ok()) status = RunBehindSavepoint(*entry);
  }
  if (status.ok()) status = FaultPoint("store.before_commit");
  if (status.ok()) status = database_->Execute("COMMIT");
  if (!status.ok() && database_->InTransaction()) database_->Execute("ROLLBACK").IgnoreError();
  // The change is durable: only a crash can be simulated here, not an error.
  if (status.ok()) FaultPoint("store.after_commit").IgnoreError();
  return status;
}

absl::Status CommitQueue::RunBehindSavepoint(Entry& entry) {
  TRAIND_RETURN_IF_ERROR(database_->Execute("SAVEPOINT change"));
  entry.status = entry.change(*database_);
  // A full disk makes SQLite give up the whole transaction, and with it the savepoint.
  if (!database_->InTransaction()) return entry.status;
  if (!entry.status.ok()) TRAIND_RETURN_IF_ERROR(database_->Execute("ROLLBACK TO change"));
  return database_->Execute("RELEASE change");
}

}  // namespace traind::store
