// How `traind-worker` ends, for whoever started it. What happened to the run is in its last
// report; the code tells what to expect of that.
#pragma once

namespace traind {

enum class WorkerExit : int {
  kSucceeded = 0,      // The adapter is durable; the daemon knows.
  kFailed = 1,         // The run failed; the daemon knows why.
  kBadAssignment = 2,  // The assignment cannot be read, or this machine cannot train. No report.
  kStopped = 3,        // Stopped as asked; the daemon knows.
  kFenced = 4,         // Another attempt has taken over.
  kUndelivered = 5,    // The run ended, but the daemon was away too long: see the spool.
};

}  // namespace traind
