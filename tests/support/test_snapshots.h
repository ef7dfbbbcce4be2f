// Snapshots for tests of the scheduler.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/scheduler/plan.h"

namespace traind {

// A queued job that was created `age` seconds before a fixed moment.
inline scheduler::QueuedJob TestQueuedJob(const std::string& id, int priority, int age, int devices,
                                          const std::string& device_type = "cpu") {
  scheduler::QueuedJob job;
  job.uid = absl::StrCat("uid-", id);
  job.name = absl::StrCat("jobs/", id);
  job.priority = priority;
  job.create_time = absl::FromUnixSeconds(1'700'000'000 - age);
  job.devices = devices;
  job.device_type = device_type;
  return job;
}

// `count` free devices: cpu0, cpu1, …
inline std::vector<scheduler::Device> TestDevices(const std::string& type, int count) {
  std::vector<scheduler::Device> devices;
  for (int i = 0; i < count; ++i) devices.push_back({absl::StrCat(type, i), type, ""});
  return devices;
}

// The snapshot after the plan was carried out.
inline scheduler::Snapshot AfterPlan(const scheduler::Snapshot& snapshot,
                                     const scheduler::Plan& plan) {
  scheduler::Snapshot after;
  after.devices = snapshot.devices;
  std::vector<std::string> gone;
  for (const scheduler::Impossible& job : plan.impossible) gone.push_back(job.job_uid);
  for (const scheduler::Assignment& assignment : plan.assignments) {
    gone.push_back(assignment.job_uid);
    for (scheduler::Device& device : after.devices) {
      for (const std::string& id : assignment.devices) {
        if (device.id == id) device.holder = absl::StrCat("jobs/", assignment.job_uid.substr(4));
      }
    }
  }
  for (const scheduler::QueuedJob& job : snapshot.queue) {
    bool stays = true;
    for (const std::string& uid : gone) stays = stays && uid != job.uid;
    if (stays) after.queue.push_back(job);
  }
  return after;
}

}  // namespace traind
