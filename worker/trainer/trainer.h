// The training loop.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/os/clock.h"
#include "worker/data/batch_plan.h"
#include "worker/lora/adapter.h"
#include "worker/model/causal_lm.h"
#include "worker/trainer/checkpoint_store.h"
#include "worker/trainer/evaluation.h"
#include "worker/trainer/report_sink.h"
#include "worker/trainer/run_state.h"
#include "worker/trainer/step_log.h"
#include "worker/trainer/stop_flag.h"
#include "worker/trainer/trainer_options.h"

namespace traind {

// What the loop works with. All borrowed; they outlive the trainer.
struct TrainerParts {
  CausalLm& model;
  Adapter& adapter;
  BatchPlan& plan;
  const std::vector<Example>& train_rows;
  const std::vector<Example>& eval_rows;
  const SampleQuestions& samples;
  CheckpointStore& checkpoints;
  ReportSink& sink;
  const StopFlag& stop;
  const Clock& clock;
};

enum class TrainingEnd { kFinished, kStopped };

// Makes the updates of one run, in the order of Transformers' Trainer (window of micro-batches,
// clip, AdamW, schedule, then log, evaluate, save). Every window is divided by the number of its
// own labels, so its gradient does not depend on how it is cut into micro-batches.
//
// A window without a token to predict makes no update and moves neither schedule nor log. A loss or
// gradient that is not finite makes no update either, is reported as it is, with a notice, and ends
// the run at the third in a row.
//
// A run that is resumed from a checkpoint goes on bit for bit as if it had never stopped: order of
// rows and dropout are functions of the step alone. Lives on the trainer's thread.
class Trainer {
 public:
  Trainer(const TrainerOptions& options, const TrainerParts& parts);

  // Restores, trains to the end or until a stop. Errors: the parts', NON_FINITE_LOSS,
  // ATTEMPT_FENCED.
  absl::StatusOr<TrainingEnd> Run();

 private:
  // What became of one window.
  enum class WindowEnd { kDone, kStopRequested };

  absl::Status Restore();
  absl::Status BeforeFirstUpdate();
  absl::Status AfterLastUpdate();
  absl::StatusOr<TrainingEnd> Stop();

  absl::StatusOr<WindowEnd> TrainWindow();
  std::vector<PackedBatch> PackWindow(const UpdatePlan& plan) const;
  // Adds the window's gradient; sets `loss`. True: done, false: a stop came in between.
  absl::StatusOr<bool> ForwardBackward(const std::vector<PackedBatch>& window, int64_t denominator,
                                       double& loss);
  // One optimizer step; fills in norm, rate, time and whether it was applied.
  void ApplyUpdate(UpdateRecord& record);
  absl::Status CountNonFinite(const UpdateRecord& record);

  // Reports, evaluates and saves as the options ask after the update that was just made.
  absl::Status AfterWindow();
  void Log();
  absl::Status Evaluate();
  absl::Status AnswerSamples();
  absl::Status Save();
  bool IsDue(IntervalStrategy strategy, int64_t steps) const;

  const TrainerOptions options_;
  const TrainerParts parts_;
  RunState state_;
  StepLog log_;
  int64_t evaluated_step_ = -1;
  int64_t saved_step_ = 0;  // Nothing is lost if step 0 is not saved.
};

}  // namespace traind
