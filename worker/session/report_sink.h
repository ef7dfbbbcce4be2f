// What a run tells the world: numbered reports, and how far it is.
#pragma once

#include <cstdint>

#include "traind/worker/v1/worker_service.pb.h"

namespace traind {

// Takes a run's reports. Called from the trainer's thread; calls never wait for the daemon.
class ReportSink {
 public:
  virtual ~ReportSink() = default;

  // Keeps and, some time later, delivers `report`, in the order of the calls. The sink fills in
  // `number` and `time`.
  virtual void Send(worker::v1::Report report) = 0;

  // Updates done, for heartbeats.
  virtual void SetStep(int64_t step) = 0;
};

}  // namespace traind
