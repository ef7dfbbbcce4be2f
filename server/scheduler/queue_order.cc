#include "server/scheduler/queue_order.h"

#include <tuple>

namespace traind::scheduler {

bool GoesBefore(const QueuedJob& a, const QueuedJob& b) {
  return std::tie(b.priority, a.create_time, a.uid) < std::tie(a.priority, b.create_time, b.uid);
}

}  // namespace traind::scheduler
