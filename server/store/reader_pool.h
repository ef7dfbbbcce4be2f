// Connections for reading.
#pragma once

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/store/database.h"

namespace traind::store {

// Lends read-only connections, each with an open transaction: all that is read through one lease is
// of the same moment. Opens as many as are used at once and keeps a few. Thread-safe.
class ReaderPool {
 public:
  explicit ReaderPool(DatabaseOptions options) : options_(std::move(options)) {}

  // A connection until it is destroyed. Lives shorter than the pool. Thread-compatible.
  class Lease {
   public:
    Lease(ReaderPool& pool, std::unique_ptr<Database> database)
        : pool_(&pool), database_(std::move(database)) {}
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease();

    Database& database() { return *database_; }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Database> database_;
  };

  absl::StatusOr<Lease> Borrow();

 private:
  std::unique_ptr<Database> TakeIdle();
  void Return(std::unique_ptr<Database> database);

  const DatabaseOptions options_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Database>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind::store
