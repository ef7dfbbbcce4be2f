// Shows a running job: lines for what happened, and on a terminal two lines below them that are
// redrawn with progress, speed and the curve of the loss.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/output/io_streams.h"
#include "traind/v1/event.pb.h"
#include "traind/v1/job.pb.h"

namespace traind::client {

// Owned by the command that watches. Thread-compatible.
class WatchView {
 public:
  // `io` must outlive the view.
  WatchView(const IoStreams& io, std::string job_name);

  // REQUIRES: events of one job in their order. Heartbeats and the end show nothing.
  void OnEvent(const v1::Event& event);

  // A line for people that is not part of the job, to stderr.
  void Message(const std::string& text);

  // Removes the lines that are redrawn, to leave the terminal clean.
  void Close();

  // The block at the end: how it went, losses, speed, memory, where the adapter is or what failed.
  void PrintSummary(const v1::Job& job);

 private:
  void OnStateChange(const v1::StateChange& change);
  void OnPlan(const v1::TrainingPlan& plan);
  void OnStep(const v1::StepMetrics& step);
  void OnEval(const v1::EvalMetrics& eval);
  void OnSample(const v1::SampleAnswer& sample);
  void OnNotice(const v1::Notice& notice);

  void Line(const std::string& text);
  void DrawStatus();
  void ClearStatus();
  std::vector<std::string> StatusLines() const;
  std::string ProgressLine() const;
  std::string LossLine() const;
  std::string StepLine(const v1::StepMetrics& step) const;

  const IoStreams& io_;
  std::string job_name_;
  std::string phase_;  // What the status says while no update was made.
  int status_lines_ = 0;

  std::optional<v1::StepMetrics> newest_;
  std::vector<double> losses_;
  std::vector<double> eval_losses_;
  int64_t tokens_ = 0;
  double training_seconds_ = 0;
  int64_t peak_memory_bytes_ = 0;
  double seconds_per_step_ = 0;  // Smoothed over the reports; 0 if not known.
};

}  // namespace traind::client
