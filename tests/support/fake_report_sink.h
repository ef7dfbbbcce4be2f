// Keeps what a run tells.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/trainer/report_sink.h"

namespace traind {

class FakeReportSink : public ReportSink {
 public:
  std::vector<v1::Attempt::Phase> phases;
  std::vector<v1::TrainingPlan> plans;
  std::vector<int64_t> resumed;
  std::vector<v1::StepMetrics> steps;
  std::vector<v1::EvalMetrics> evals;
  std::vector<v1::CheckpointSaved> checkpoints;
  std::vector<v1::SampleAnswer> samples;
  std::vector<v1::Notice> notices;
  std::vector<std::string> order;  // Every report but phases and notices, such as `step 3`.
  int64_t updates = -1;

  void OnPhase(v1::Attempt::Phase phase) override { phases.push_back(phase); }
  void OnPlan(const v1::TrainingPlan& plan) override { plans.push_back(plan); }
  void OnResumed(int64_t step) override { resumed.push_back(step); }
  void OnStep(const v1::StepMetrics& metrics) override {
    steps.push_back(metrics);
    Add("step", metrics.step());
  }
  void OnEval(const v1::EvalMetrics& metrics) override {
    evals.push_back(metrics);
    Add("eval", metrics.step());
  }
  void OnCheckpoint(const v1::CheckpointSaved& saved) override {
    checkpoints.push_back(saved);
    Add("checkpoint", saved.step());
  }
  void OnSample(const v1::SampleAnswer& answer) override {
    samples.push_back(answer);
    Add("sample", answer.step());
  }
  void OnNotice(const v1::Notice& notice) override { notices.push_back(notice); }
  void OnUpdate(int64_t step) override { updates = step; }

 private:
  void Add(const char* what, int64_t step) { order.push_back(absl::StrCat(what, " ", step)); }
};

}  // namespace traind
