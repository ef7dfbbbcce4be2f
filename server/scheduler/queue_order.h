// Which of two queued jobs goes first.
#pragma once

#include "server/scheduler/plan.h"

namespace traind::scheduler {

// Higher priority first, then the older job, then the smaller uid: a strict total order, so that
// the same queue is always worked off in the same way.
bool GoesBefore(const QueuedJob& a, const QueuedJob& b);

}  // namespace traind::scheduler
