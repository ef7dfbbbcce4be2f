// Jobs, reports and records for tests of the server.
#pragma once

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/jobs/job_changes.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind {

inline absl::Time TestTime(int64_t seconds = 0) {
  return absl::FromUnixSeconds(1'700'000'000 + seconds);
}

// A job as the API hands it to the controller.
inline v1::Job TestJob(const std::string& id) {
  v1::Job job;
  job.set_name(absl::StrCat("jobs/", id));
  job.set_uid(absl::StrCat("uid-", id));
  job.set_owner("user:1000");
  job.mutable_spec()->mutable_base_model()->set_path("/models/tiny");
  job.mutable_resources()->set_devices(1);
  job.mutable_resources()->set_device_type("cpu");
  job.mutable_resources()->set_max_retries(1);
  return job;
}

// The record after an update, numbered as the store would.
inline jobs::JobRecord After(jobs::JobRecord record, const jobs::JobUpdate& update) {
  v1::Job stored = update.job;
  stored.set_revision(record.job.revision() + 1);
  stored.set_last_sequence(record.job.last_sequence() + static_cast<int64_t>(update.events.size()));
  jobs::MergeUpdate(update, stored, record);
  return record;
}

inline jobs::JobRecord QueuedRecord(const std::string& id) {
  return After({}, jobs::QueuedJob(TestJob(id), TestTime()));
}

// The record once its next attempt, `attempt-<n>`, is placed on cpu0.
inline jobs::JobRecord PlacedRecord(const jobs::JobRecord& record) {
  const std::string uid = absl::StrCat("attempt-", record.attempts.size() + 1);
  return After(record, *jobs::PlaceJob(record, {uid, "nodes/local", {"cpu0"}}, TestTime(1)));
}

inline worker::v1::Report NumberedReport(int64_t number) {
  worker::v1::Report report;
  report.set_number(number);
  report.mutable_time()->set_seconds(1'700'000'100 + number);
  return report;
}

inline worker::v1::Report StepReport(int64_t number, int64_t step, double loss = 2.5) {
  worker::v1::Report report = NumberedReport(number);
  v1::StepMetrics& metrics = *report.mutable_step();
  metrics.set_step(step);
  metrics.set_loss(loss);
  metrics.set_tokens(1000);
  metrics.set_tokens_per_second(500);
  metrics.set_total_steps(10);
  return report;
}

inline worker::v1::Report FinishedReport(int64_t number, worker::v1::Finished::Result result) {
  worker::v1::Report report = NumberedReport(number);
  report.mutable_finished()->set_result(result);
  if (result == worker::v1::Finished::SUCCEEDED) {
    report.mutable_finished()->set_adapter_path("/state/jobs/uid/adapter");
  }
  return report;
}

}  // namespace traind
