#include "server/store/reader_pool.h"

#include <utility>

#include "common/status/errors.h"

namespace traind::store {
namespace {

constexpr size_t kMaxIdle = 4;

}  // namespace

ReaderPool::Lease::~Lease() {
  if (database_ != nullptr) pool_->Return(std::move(database_));
}

absl::StatusOr<ReaderPool::Lease> ReaderPool::Borrow() {
  std::unique_ptr<Database> database = TakeIdle();
  if (database == nullptr) {
    TRAIND_ASSIGN_OR_RETURN(database, Database::Open(options_));
  }
  TRAIND_RETURN_IF_ERROR(database->Execute("BEGIN"));
  return Lease(*this, std::move(database));
}

std::unique_ptr<Database> ReaderPool::TakeIdle() {
  absl::MutexLock lock(&mutex_);
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Database> database = std::move(idle_.back());
  idle_.pop_back();
  return database;
}

void ReaderPool::Return(std::unique_ptr<Database> database) {
  // A connection that cannot end its transaction would hold an old snapshot: let it go.
  if (!database->Execute("ROLLBACK").ok()) return;
  absl::MutexLock lock(&mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(database));
}

}  // namespace traind::store
