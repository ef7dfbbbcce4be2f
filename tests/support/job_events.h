// The events of a small training run, for tests of what is made of them.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "traind/v1/event.pb.h"

namespace traind {

inline v1::Event StateEvent(v1::Job::State from, v1::Job::State to) {
  v1::Event event;
  event.mutable_state_change()->set_from(from);
  event.mutable_state_change()->set_to(to);
  return event;
}

inline v1::Event StepEvent(int64_t step, int64_t total, double loss) {
  v1::Event event;
  auto* metrics = event.mutable_step();
  metrics->set_step(step);
  metrics->set_total_steps(total);
  metrics->set_loss(loss);
  metrics->set_learning_rate(1e-3);
  metrics->set_grad_norm(0.5);
  metrics->set_tokens(100);
  metrics->set_tokens_per_second(50);
  metrics->set_memory_bytes(1 << 30);
  metrics->set_peak_memory_bytes(int64_t{3} << 29);
  return event;
}

inline v1::Event EvalEvent(int64_t step, double loss) {
  v1::Event event;
  event.mutable_eval()->set_step(step);
  event.mutable_eval()->set_loss(loss);
  event.mutable_eval()->set_rows(40);
  event.mutable_eval()->set_runtime_seconds(2);
  return event;
}

inline v1::Event PlanEvent(int64_t steps) {
  v1::Event event;
  auto* plan = event.mutable_plan();
  plan->set_rows_kept(300);
  (*plan->mutable_rows_dropped())["no_supervised_tokens"] = 2;
  plan->set_rows_truncated(1);
  plan->set_tokens(9299);
  plan->set_supervised_tokens(4100);
  plan->set_eval_rows(40);
  plan->set_steps_per_epoch(steps);
  plan->set_total_steps(steps);
  plan->set_trainable_parameters(4884480);
  plan->set_total_parameters(139399488);
  return event;
}

inline v1::Event EndEvent(v1::StreamEnd::Reason reason) {
  v1::Event event;
  event.mutable_end()->set_reason(reason);
  return event;
}

// A whole run of `steps` updates, numbered from 1, without the end of the stream.
inline std::vector<v1::Event> EventsOfARun(int64_t steps) {
  std::vector<v1::Event> events = {StateEvent(v1::Job::STATE_UNSPECIFIED, v1::Job::QUEUED),
                                   StateEvent(v1::Job::QUEUED, v1::Job::STARTING)};
  v1::Event phase;
  phase.mutable_phase_change()->set_phase(v1::Attempt::LOADING_MODEL);
  events.push_back(phase);
  events.push_back(PlanEvent(steps));
  events.push_back(EvalEvent(0, 3.85));
  events.push_back(StateEvent(v1::Job::STARTING, v1::Job::RUNNING));
  for (int64_t step = 1; step <= steps; ++step) {
    events.push_back(StepEvent(step, steps, 4.0 - static_cast<double>(step) / 10));
  }
  events.push_back(EvalEvent(steps, 2.78));
  v1::Event checkpoint;
  checkpoint.mutable_checkpoint()->set_name(absl::StrCat("jobs/run/checkpoints/", steps));
  checkpoint.mutable_checkpoint()->set_step(steps);
  checkpoint.mutable_checkpoint()->set_size_bytes(12 << 20);
  checkpoint.mutable_checkpoint()->set_stall_seconds(0.2);
  events.push_back(checkpoint);
  v1::Event sample;
  sample.mutable_sample()->set_step(steps);
  sample.mutable_sample()->set_prompt("Define the noun \"lantern\".");
  sample.mutable_sample()->set_answer("a portable\nlight");
  events.push_back(sample);
  events.push_back(StateEvent(v1::Job::RUNNING, v1::Job::SUCCEEDED));
  for (size_t i = 0; i < events.size(); ++i) events[i].set_sequence(static_cast<int64_t>(i) + 1);
  return events;
}

// The job after such a run.
inline v1::Job SucceededJob(const std::string& name) {
  v1::Job job;
  job.set_name(name);
  job.set_state(v1::Job::SUCCEEDED);
  job.mutable_create_time()->set_seconds(1'799'999'000);
  job.mutable_end_time()->set_seconds(1'799'999'151);
  job.set_adapter_path("/var/lib/traind/jobs/run/adapter");
  job.mutable_progress()->set_step(3);
  job.mutable_progress()->set_total_steps(3);
  job.mutable_progress()->set_loss(2.5);
  job.mutable_progress()->set_eval_loss(2.78);
  return job;
}

}  // namespace traind
