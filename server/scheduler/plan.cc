#include "server/scheduler/plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/status/errors.h"
#include "server/scheduler/queue_order.h"

namespace traind::scheduler {
namespace {

constexpr absl::string_view kCpu = "cpu";
constexpr absl::string_view kCuda = "cuda";
constexpr size_t kMaxNamedHolders = 3;

// All devices of one type.
struct Pool {
  int total = 0;
  std::vector<std::string> free;     // Ids; the next to give first.
  std::vector<std::string> holders;  // Job names, sorted, once each.
  std::string head;                  // The job that waits at the front; empty if none does.
  int waiting = 0;
};

using Pools = std::map<std::string, Pool>;

// `cuda2` before `cuda10`.
bool DeviceBefore(const Device& a, const Device& b) {
  return std::make_tuple(a.id.size(), absl::string_view(a.id)) <
         std::make_tuple(b.id.size(), absl::string_view(b.id));
}

void AddHolder(const std::string& holder, std::vector<std::string>& holders) {
  const auto place = std::lower_bound(holders.begin(), holders.end(), holder);
  if (place == holders.end() || *place != holder) holders.insert(place, holder);
}

Pools MakePools(std::vector<Device> devices) {
  std::sort(devices.begin(), devices.end(), DeviceBefore);
  Pools pools;
  for (const Device& device : devices) {
    Pool& pool = pools[device.type];
    ++pool.total;
    if (device.holder.empty()) {
      pool.free.push_back(device.id);
    } else {
      AddHolder(device.holder, pool.holders);
    }
  }
  return pools;
}

// The type that the job takes, whether or not the node has enough of it.
std::string TypeFor(const QueuedJob& job, const Pools& pools) {
  if (job.device_type == kCpu || job.device_type == kCuda) return job.device_type;
  const auto cuda = pools.find(std::string(kCuda));
  const bool fits = cuda != pools.end() && cuda->second.total >= job.devices;
  return std::string(fits ? kCuda : kCpu);
}

std::string Count(int devices, absl::string_view type) {
  return absl::StrCat(devices, " ", type, devices == 1 ? " device" : " devices");
}

absl::Status WhyImpossible(const QueuedJob& job, const std::string& type, int total) {
  const std::string remedy =
      total > 0 ? absl::StrCat("; set resources.devices to at most ", total)
                : absl::StrCat("; set resources.device_type to one that `node list` shows");
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kDeviceCountImpossible,
               absl::StrCat(job.name, " needs ", Count(job.devices, type), ", but this node has ",
                            total, remedy),
               {{"job", job.name},
                {"devices", absl::StrCat(job.devices)},
                {"device_type", type},
                {"available", absl::StrCat(total)}});
}

std::string Holders(const Pool& pool) {
  const size_t named = std::min(pool.holders.size(), kMaxNamedHolders);
  std::string text =
      absl::StrJoin(pool.holders.begin(), pool.holders.begin() + static_cast<int64_t>(named), ", ");
  if (pool.holders.size() > named) {
    absl::StrAppend(&text, " and ", pool.holders.size() - named, " more");
  }
  return text;
}

std::string WhyWaiting(const QueuedJob& job, const std::string& type, const Pool& pool) {
  const std::string wish = absl::StrCat("waits for ", Count(job.devices, type));
  if (!pool.head.empty()) {
    return absl::StrCat(wish, "; number ", pool.waiting + 1, " in the queue, ", pool.head,
                        " is first");
  }
  const int used = pool.total - static_cast<int>(pool.free.size());
  return absl::StrCat(wish, "; ", used, " of ", pool.total, " in use by ", Holders(pool));
}

Assignment Take(const QueuedJob& job, Pool& pool) {
  Assignment assignment{job.uid, {}};
  const auto end = pool.free.begin() + job.devices;
  assignment.devices.assign(pool.free.begin(), end);
  pool.free.erase(pool.free.begin(), end);
  AddHolder(job.name, pool.holders);
  return assignment;
}

}  // namespace

Plan MakePlan(const Snapshot& snapshot) {
  std::vector<QueuedJob> queue = snapshot.queue;
  std::sort(queue.begin(), queue.end(), GoesBefore);
  Pools pools = MakePools(snapshot.devices);
  Plan plan;
  for (const QueuedJob& job : queue) {
    const std::string type = TypeFor(job, pools);
    Pool& pool = pools[type];
    const bool fits_now = static_cast<int>(pool.free.size()) >= job.devices;
    if (pool.total < job.devices) {
      plan.impossible.push_back({job.uid, WhyImpossible(job, type, pool.total)});
    } else if (pool.head.empty() && fits_now) {
      plan.assignments.push_back(Take(job, pool));
    } else {
      plan.waiting.push_back({job.uid, WhyWaiting(job, type, pool)});
      if (pool.head.empty()) pool.head = job.name;
      ++pool.waiting;
    }
  }
  return plan;
}

}  // namespace traind::scheduler
