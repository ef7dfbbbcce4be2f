#include "worker/trainer/step_log.h"

#include "worker/device/process_usage.h"

namespace traind {
namespace {

double PerSecond(double amount, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  return seconds > 0 ? amount / seconds : 0;
}

}  // namespace

void StepLog::Add(const UpdateRecord& update) {
  newest_ = update;
  pending_->loss_sum += update.loss;
  pending_->losses += 1;
  pending_->tokens += update.tokens;
  pending_->supervised_tokens += update.supervised_tokens;
  timed_tokens_ += update.tokens;
  update_time_ += update.total();
  cpu_time_ += update.cpu;
}

v1::StepMetrics StepLog::Take() {
  v1::StepMetrics metrics;
  metrics.set_loss(pending_->loss_sum / static_cast<double>(pending_->losses));
  metrics.set_learning_rate(newest_.learning_rate);
  metrics.set_grad_norm(newest_.grad_norm);
  metrics.set_tokens(pending_->tokens);
  metrics.set_supervised_tokens(pending_->supervised_tokens);
  metrics.set_tokens_per_second(PerSecond(static_cast<double>(timed_tokens_), update_time_));
  auto& phases = *metrics.mutable_phase_seconds();
  phases["data"] = absl::ToDoubleSeconds(newest_.data);
  phases["forward_backward"] = absl::ToDoubleSeconds(newest_.forward_backward);
  phases["optim"] = absl::ToDoubleSeconds(newest_.optim);
  const MemoryUsage memory = ReadMemoryUsage();
  metrics.set_memory_bytes(memory.resident_bytes);
  metrics.set_peak_memory_bytes(memory.peak_resident_bytes);
  metrics.set_cpu_cores(PerSecond(absl::ToDoubleSeconds(cpu_time_), update_time_));
  *pending_ = PendingLog();
  timed_tokens_ = 0;
  update_time_ = absl::ZeroDuration();
  cpu_time_ = absl::ZeroDuration();
  return metrics;
}

}  // namespace traind
