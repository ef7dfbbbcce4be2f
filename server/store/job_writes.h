// What is written, as SQL. Each function runs in the caller's transaction; after an error the
// caller takes back what it did.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/database.h"
#include "server/store/job_store.h"

namespace traind::store {

// As JobStore::FindRequest.
absl::StatusOr<std::optional<v1::Job>> FindReplay(Database& database, const RequestId& request);

// As JobStore::CreateJob.
absl::StatusOr<CreateResult> InsertJob(Database& database, const JobChange& change,
                                       const RequestId& request);

// As JobStore::Commit.
absl::StatusOr<v1::Job> UpdateJob(Database& database, const JobChange& change);

// As JobStore::DeleteJob.
absl::Status RemoveJob(Database& database, const std::string& name);

}  // namespace traind::store
