// The one thread that writes.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/store/database.h"

namespace traind::store {

// Runs changes on a thread of its own. Changes that wait at the same time share one transaction,
// each behind a savepoint, so that one that fails takes nothing of the others with it; if the
// transaction as a whole fails, each is tried alone. Thread-safe.
class CommitQueue {
 public:
  // A change may run more than once; it must depend on nothing but the database and its inputs.
  using Change = std::function<absl::Status(Database&)>;

  explicit CommitQueue(std::unique_ptr<Database> database);
  // Commits what waits, then ends the thread.
  ~CommitQueue();
  CommitQueue(const CommitQueue&) = delete;
  CommitQueue& operator=(const CommitQueue&) = delete;

  // Returns once the change is durable, or with its error and then without any effect. Errors: the
  // change's own, and those of JobStore.
  absl::Status Run(Change change);

  // How many changes wait for the next group.
  size_t WaitingForTest();

 private:
  struct Entry {
    Change change;
    absl::Status status;
    bool done = false;
  };

  void Loop();
  // The next group; empty when the queue is being destroyed and nothing waits.
  std::vector<Entry*> TakeGroup();
  void CommitGroup(const std::vector<Entry*>& group);
  // One transaction. An error means that nothing of the group was stored.
  absl::Status TryGroup(const std::vector<Entry*>& group);
  absl::Status RunBehindSavepoint(Entry& entry);

  std::unique_ptr<Database> database_;  // Used by the thread only.
  absl::Mutex mutex_;
  std::deque<Entry*> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace traind::store
