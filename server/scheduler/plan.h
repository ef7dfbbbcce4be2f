// Who runs next, and where: a pure function from a snapshot to a plan.
//
// Jobs are taken in queue order (see queue_order.h). The first one of a device type that does not
// fit reserves that type: nothing after it may take devices of the type, so that small jobs cannot
// starve a big one. Devices that become free wake the planner; there is no back-off.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace traind::scheduler {

// A job in QUEUED.
struct QueuedJob {
  std::string uid;
  std::string name;  // `jobs/{job}`
  int priority = 0;  // Higher runs first.
  absl::Time create_time;
  int devices = 1;
  std::string device_type;  // `cpu`, `cuda`, or `auto`: cuda if the node has enough, else cpu.
};

// A device of this node.
struct Device {
  std::string id;      // Such as `cpu0`.
  std::string type;    // `cpu` or `cuda`.
  std::string holder;  // Name of the job that holds it; empty if it is free.
};

// What the plan is made from; the order of both lists does not matter.
struct Snapshot {
  std::vector<QueuedJob> queue;
  std::vector<Device> devices;
};

// A job that gets its devices now.
struct Assignment {
  std::string job_uid;
  std::vector<std::string> devices;  // Ids.
};

// A job that goes on waiting.
struct Waiting {
  std::string job_uid;
  std::string reason;  // For `pending_reason`.
};

// A job that this node can never hold.
struct Impossible {
  std::string job_uid;
  absl::Status why;  // FAILED_PRECONDITION (DEVICE_COUNT_IMPOSSIBLE).
};

// Every job of the queue is in exactly one of the three, in queue order.
struct Plan {
  std::vector<Assignment> assignments;
  std::vector<Waiting> waiting;
  std::vector<Impossible> impossible;
};

Plan MakePlan(const Snapshot& snapshot);

}  // namespace traind::scheduler
