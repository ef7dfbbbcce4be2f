// What is read, as SQL. Each function runs in the caller's transaction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/database.h"
#include "server/store/job_store.h"

namespace traind::store {

absl::Status JobNotFound(absl::string_view name);

absl::StatusOr<JobRecord> ReadJob(Database& database, const std::string& name);
absl::StatusOr<JobPage> ReadPage(Database& database, const JobQuery& query);
absl::StatusOr<std::vector<JobRecord>> ReadActiveJobs(Database& database);
absl::StatusOr<std::map<v1::Job::State, int64_t>> ReadCounts(Database& database);
absl::StatusOr<std::vector<v1::Event>> ReadEventsAfter(Database& database,
                                                       const std::string& job_uid, int64_t after,
                                                       int limit);

}  // namespace traind::store
