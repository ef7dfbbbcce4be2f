// A job as the daemon keeps it, and one change of it. Values only.
#pragma once

#include <optional>
#include <vector>

#include "traind/storage/v1/storage.pb.h"
#include "traind/v1/event.pb.h"
#include "traind/v1/job.pb.h"

namespace traind::jobs {

// A job as it is stored.
struct JobRecord {
  v1::Job job;
  std::vector<storage::v1::AttemptRecord> attempts;  // Oldest first.
};

// One change of one job, ready to be committed as a whole. The store fills in the sequence of each
// event and the job's `last_sequence`, `revision` and `etag`.
struct JobUpdate {
  v1::Job job;                                        // The whole new job.
  std::optional<storage::v1::AttemptRecord> attempt;  // Inserted or replaced by its number.
  std::vector<v1::Event> events;
};

// The record after the update. `stored` is what the store answered to it.
void MergeUpdate(const JobUpdate& update, const v1::Job& stored, JobRecord& record);

}  // namespace traind::jobs
