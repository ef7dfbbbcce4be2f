#include "worker/trainer/trainer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/names/resource_name.h"
#include "common/os/fault_point.h"
#include "common/status/errors.h"
#include "worker/device/process_usage.h"

namespace traind {
namespace {

v1::Notice Warning(absl::string_view reason, std::string message) {
  v1::Notice notice;
  notice.set_severity(v1::Notice::WARNING);
  notice.set_reason(std::string(reason));
  notice.set_message(std::move(message));
  return notice;
}

int64_t SupervisedTokens(const std::vector<PackedBatch>& window) {
  int64_t sum = 0;
  for (const PackedBatch& batch : window) sum += batch.supervised_tokens;
  return sum;
}

int64_t Tokens(const std::vector<PackedBatch>& window) {
  int64_t sum = 0;
  for (const PackedBatch& batch : window) sum += batch.tokens();
  return sum;
}

}  // namespace

Trainer::Trainer(const TrainerOptions& options, const TrainerParts& parts)
    : options_(options), parts_(parts), log_(&state_.pending) {}

absl::StatusOr<TrainingEnd> Trainer::Run() {
  TRAIND_RETURN_IF_ERROR(Restore());
  TRAIND_RETURN_IF_ERROR(BeforeFirstUpdate());
  parts_.sink.OnPhase(v1::Attempt::WARMING);
  bool stepping = false;
  while (state_.step < parts_.plan.total_steps()) {
    TRAIND_ASSIGN_OR_RETURN(const WindowEnd end, TrainWindow());
    if (end == WindowEnd::kStopRequested) return Stop();
    if (!std::exchange(stepping, true)) parts_.sink.OnPhase(v1::Attempt::STEPPING);
    TRAIND_RETURN_IF_ERROR(AfterWindow());
    TRAIND_RETURN_IF_ERROR(FaultPoint("trainer.after_update"));
  }
  TRAIND_RETURN_IF_ERROR(AfterLastUpdate());
  if (parts_.stop.kind() == StopKind::kFenced) return Stop();
  return TrainingEnd::kFinished;
}

absl::Status Trainer::Restore() {
  parts_.sink.OnPhase(v1::Attempt::RESTORING);
  TRAIND_ASSIGN_OR_RETURN(const auto restored, parts_.checkpoints.RestoreNewest(parts_.adapter));
  if (restored.has_value()) {
    state_ = restored->state;
    saved_step_ = state_.step;
    for (const std::string& skipped : restored->skipped) {
      parts_.sink.OnNotice(Warning(ReasonName(Reason::kCheckpointCorrupt),
                                   absl::StrCat("skipped a damaged checkpoint: ", skipped)));
    }
  }
  parts_.sink.OnUpdate(state_.step);
  parts_.sink.OnResumed(state_.step);
  return absl::OkStatus();
}

absl::Status Trainer::BeforeFirstUpdate() {
  if (state_.step > 0) return absl::OkStatus();
  if (options_.eval_strategy != IntervalStrategy::kNo) TRAIND_RETURN_IF_ERROR(Evaluate());
  return AnswerSamples();
}

absl::Status Trainer::AfterLastUpdate() {
  if (options_.eval_strategy != IntervalStrategy::kNo) TRAIND_RETURN_IF_ERROR(Evaluate());
  if (options_.save_strategy != IntervalStrategy::kNo) TRAIND_RETURN_IF_ERROR(Save());
  return AnswerSamples();
}

absl::StatusOr<TrainingEnd> Trainer::Stop() {
  switch (parts_.stop.kind()) {
    case StopKind::kFenced:
      return Error(absl::StatusCode::kFailedPrecondition, Reason::kAttemptFenced,
                   "another attempt of the job has taken over");
    case StopKind::kStopWithCheckpoint:
      TRAIND_RETURN_IF_ERROR(Save());
      break;
    case StopKind::kStop:
    case StopKind::kNone:
      break;
  }
  return TrainingEnd::kStopped;
}

absl::StatusOr<Trainer::WindowEnd> Trainer::TrainWindow() {
  const absl::Time start = parts_.clock.Now();
  const absl::Duration cpu_start = CpuTimeUsed();
  const std::vector<PackedBatch> window = PackWindow(parts_.plan.UpdateAt(state_.step));
  UpdateRecord record;
  record.tokens = Tokens(window);
  record.supervised_tokens = SupervisedTokens(window);
  const absl::Time packed = parts_.clock.Now();
  record.data = packed - start;
  if (record.supervised_tokens > 0) {
    const int64_t denominator = WindowDenominator(window, options_.loss_denominator);
    TRAIND_ASSIGN_OR_RETURN(const bool done, ForwardBackward(window, denominator, record.loss));
    if (!done) return WindowEnd::kStopRequested;
    record.forward_backward = parts_.clock.Now() - packed;
    ApplyUpdate(record);
    record.cpu = CpuTimeUsed() - cpu_start;
    log_.Add(record);
    TRAIND_RETURN_IF_ERROR(CountNonFinite(record));
  } else if (parts_.stop.kind() != StopKind::kNone) {
    return WindowEnd::kStopRequested;
  }
  ++state_.step;
  parts_.sink.OnUpdate(state_.step);
  return WindowEnd::kDone;
}

std::vector<PackedBatch> Trainer::PackWindow(const UpdatePlan& plan) const {
  std::vector<PackedBatch> window;
  for (const MicroBatch& rows : plan.micro_batches) {
    std::vector<const Example*> examples;
    for (const int64_t row : rows) {
      examples.push_back(&parts_.train_rows[static_cast<size_t>(row)]);
    }
    if (!examples.empty()) window.push_back(PackExamples(examples));
  }
  return window;
}

absl::StatusOr<bool> Trainer::ForwardBackward(const std::vector<PackedBatch>& window,
                                              int64_t denominator, double& loss) {
  const absl::Span<float> gradients = parts_.adapter.gradients();
  std::fill(gradients.begin(), gradients.end(), 0.0f);
  const auto divisor = static_cast<double>(denominator);
  double nll_sum = 0;
  for (size_t i = 0; i < window.size(); ++i) {
    if (parts_.stop.kind() != StopKind::kNone) return false;
    if (window[i].supervised_tokens == 0) continue;
    const DropoutKey key{options_.seed, static_cast<uint64_t>(state_.step), i};
    TRAIND_ASSIGN_OR_RETURN(const LossSum sum,
                            parts_.model.ForwardBackward(window[i], divisor, key));
    nll_sum += sum.nll_sum;
  }
  loss = nll_sum / divisor;
  return true;
}

void Trainer::ApplyUpdate(UpdateRecord& record) {
  const absl::Time start = parts_.clock.Now();
  record.learning_rate = options_.schedule.RateAt(state_.updates);
  if (std::isfinite(record.loss)) {
    const UpdateResult result =
        AdamWUpdate(parts_.adapter, options_.optimizer, record.learning_rate, state_.updates + 1);
    record.grad_norm = result.grad_norm;
    record.applied = result.applied;
  } else {
    record.grad_norm = GradientNorm(parts_.adapter.gradients());
  }
  if (record.applied) ++state_.updates;
  record.optim = parts_.clock.Now() - start;
}

absl::Status Trainer::CountNonFinite(const UpdateRecord& record) {
  state_.nonfinite_in_a_row = record.applied ? 0 : state_.nonfinite_in_a_row + 1;
  if (record.applied) return absl::OkStatus();
  const int64_t step = state_.step + 1;
  const std::string what =
      absl::StrCat("step ", step, ": loss ", record.loss, ", gradient norm ", record.grad_norm);
  if (state_.nonfinite_in_a_row < options_.max_nonfinite_in_a_row) {
    parts_.sink.OnNotice(Warning(ReasonName(Reason::kNonFiniteLoss),
                                 absl::StrCat(what, ": the update was left out")));
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kNonFiniteLoss,
               absl::StrCat(what, ", not finite for ", state_.nonfinite_in_a_row,
                            " updates in a row; try a lower learning rate or look at the rows of "
                            "this step"),
               {{"step", absl::StrCat(step)}});
}

absl::Status Trainer::AfterWindow() {
  const bool last = state_.step == parts_.plan.total_steps();
  if ((last || state_.step % options_.logging_steps == 0) && !log_.empty()) Log();
  if (IsDue(options_.eval_strategy, options_.eval_steps)) TRAIND_RETURN_IF_ERROR(Evaluate());
  if (IsDue(options_.save_strategy, options_.save_steps)) TRAIND_RETURN_IF_ERROR(Save());
  return absl::OkStatus();
}

void Trainer::Log() {
  v1::StepMetrics metrics = log_.Take();
  metrics.set_step(state_.step);
  metrics.set_epoch(parts_.plan.EpochAt(state_.step));
  metrics.set_total_steps(parts_.plan.total_steps());
  parts_.sink.OnStep(metrics);
}

absl::Status Trainer::Evaluate() {
  if (parts_.eval_rows.empty() || evaluated_step_ == state_.step) return absl::OkStatus();
  const absl::Time start = parts_.clock.Now();
  auto metrics = EvaluateRows(parts_.model, parts_.eval_rows, options_.per_device_eval_batch_size,
                              parts_.stop);
  // A stop is noticed before the next micro-batch.
  if (absl::IsCancelled(metrics.status())) return absl::OkStatus();
  if (!metrics.ok()) return metrics.status();
  metrics->set_step(state_.step);
  metrics->set_runtime_seconds(absl::ToDoubleSeconds(parts_.clock.Now() - start));
  parts_.sink.OnEval(*metrics);
  evaluated_step_ = state_.step;
  return absl::OkStatus();
}

absl::Status Trainer::AnswerSamples() {
  for (size_t i = 0; i < parts_.samples.questions.size(); ++i) {
    if (parts_.stop.kind() != StopKind::kNone) return absl::OkStatus();
    TRAIND_ASSIGN_OR_RETURN(v1::SampleAnswer answer,
                            AnswerQuestion(parts_.model, parts_.samples, i));
    answer.set_step(state_.step);
    parts_.sink.OnSample(answer);
  }
  return absl::OkStatus();
}

absl::Status Trainer::Save() {
  if (saved_step_ == state_.step || parts_.stop.kind() == StopKind::kFenced) {
    return absl::OkStatus();
  }
  const absl::Time start = parts_.clock.Now();
  TRAIND_ASSIGN_OR_RETURN(const int64_t size, parts_.checkpoints.Save(parts_.adapter, state_));
  saved_step_ = state_.step;
  v1::CheckpointSaved saved;
  saved.set_name(CheckpointName(options_.job_name, absl::StrCat(state_.step)));
  saved.set_step(state_.step);
  saved.set_size_bytes(size);
  saved.set_stall_seconds(absl::ToDoubleSeconds(parts_.clock.Now() - start));
  parts_.sink.OnCheckpoint(saved);
  return absl::OkStatus();
}

bool Trainer::IsDue(IntervalStrategy strategy, int64_t steps) const {
  switch (strategy) {
    case IntervalStrategy::kNo:
      return false;
    case IntervalStrategy::kSteps:
      return state_.step % steps == 0;
    case IntervalStrategy::kEpoch:
      return state_.step % parts_.plan.steps_per_epoch() == 0;
  }
  return false;
}

}  // namespace traind
