// What a run tells the world.
#pragma once

#include <cstdint>

#include "traind/v1/attempt.pb.h"
#include "traind/v1/event.pb.h"
#include "traind/v1/job.pb.h"

namespace traind {

// Takes a run's reports in order. Called from the trainer's thread; no call waits for whoever
// reads them.
class ReportSink {
 public:
  virtual ~ReportSink() = default;

  virtual void OnPhase(v1::Attempt::Phase phase) = 0;
  virtual void OnPlan(const v1::TrainingPlan& plan) = 0;
  // The run goes on from this update; 0 for a fresh start.
  virtual void OnResumed(int64_t step) = 0;
  virtual void OnStep(const v1::StepMetrics& metrics) = 0;
  virtual void OnEval(const v1::EvalMetrics& metrics) = 0;
  virtual void OnCheckpoint(const v1::CheckpointSaved& saved) = 0;
  virtual void OnSample(const v1::SampleAnswer& answer) = 0;
  virtual void OnNotice(const v1::Notice& notice) = 0;

  // Updates done; after every update, reported or not.
  virtual void OnUpdate(int64_t step) = 0;
};

}  // namespace traind
