// The tables, as numbered steps from one version to the next.
#pragma once

#include "absl/status/status.h"
#include "server/store/database.h"

namespace traind::store {

// The version that this program writes.
int CurrentSchemaVersion();

// Brings the tables to the current version, each step in a transaction of its own together with
// its number in `user_version`. Errors: FAILED_PRECONDITION (STORE_INVALID) if the file is of a
// newer version; it is not touched then.
absl::Status Migrate(Database& database);

// DATA_LOSS (STORE_INVALID) if SQLite finds its file damaged.
absl::Status CheckIntegrity(Database& database);

}  // namespace traind::store
