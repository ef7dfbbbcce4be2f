#include "server/metrics/metrics.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/metrics/text_format.h"

namespace traind::metrics {
namespace {

using prometheus::Labels;

// From 1 ms to about 4.5 hours, doubling: a commit and a long wait both land inside.
prometheus::Histogram::BucketBoundaries Buckets() {
  prometheus::Histogram::BucketBoundaries bounds;
  for (double bound = 0.001; bound < 20'000; bound *= 2) bounds.push_back(bound);
  return bounds;
}

std::string StateName(v1::Job::State state) { return v1::Job::State_Name(state); }

absl::Time ToTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

// The `{job}` of `jobs/{job}`.
std::string JobId(const v1::Job& job) { return job.name().substr(job.name().rfind('/') + 1); }

Labels JobLabels(const v1::Job& job) {
  const std::string id = JobId(job);
  return {{"job_id", id}, {"name", job.display_name().empty() ? id : job.display_name()}};
}

absl::string_view ResultName(SubmitResult result) {
  switch (result) {
    case SubmitResult::kAccepted:
      return "accepted";
    case SubmitResult::kReplayed:
      return "replayed";
    case SubmitResult::kRejected:
      return "rejected";
  }
  return "";
}

bool IsTerminal(v1::Job::State state) {
  return state == v1::Job::SUCCEEDED || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
}

bool HoldsDevices(v1::Job::State state) {
  return state == v1::Job::STARTING || state == v1::Job::RUNNING || state == v1::Job::PAUSING ||
         state == v1::Job::CANCELLING;
}

}  // namespace

Metrics::Metrics(MetricsOptions options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      jobs_(GaugeFamily(kJobs)),
      submitted_(CounterFamily(kJobsSubmitted)),
      finished_(CounterFamily(kJobsFinished)),
      transitions_(CounterFamily(kTransitions)),
      submit_duration_(HistogramFamily(kSubmitDuration)),
      queue_wait_(HistogramFamily(kQueueWait)),
      scheduler_cycle_(HistogramFamily(kSchedulerCycle)),
      transaction_duration_(HistogramFamily(kTransactionDuration)),
      heartbeat_age_(GaugeFamily(kHeartbeatAge)),
      bugs_(CounterFamily(kBugs).Add({})),
      series_dropped_(CounterFamily(kSeriesDropped).Add({})),
      streams_(GaugeFamily(kStreams)),
      rpcs_(CounterFamily(kRpcs)),
      rpc_duration_(HistogramFamily(kRpcDuration)),
      loss_(GaugeFamily(kTrainLoss)),
      eval_loss_(GaugeFamily(kEvalLoss)),
      grad_norm_(GaugeFamily(kGradNorm)),
      learning_rate_(GaugeFamily(kLearningRate)),
      step_(GaugeFamily(kStep)),
      progress_(GaugeFamily(kProgress)),
      eta_(GaugeFamily(kEta)),
      tokens_(CounterFamily(kTokens)),
      tokens_per_second_(GaugeFamily(kTokensPerSecond)),
      step_duration_(GaugeFamily(kStepDuration)),
      job_memory_(GaugeFamily(kJobMemory)),
      device_utilization_(GaugeFamily(kDeviceUtilization)),
      device_memory_used_(GaugeFamily(kDeviceMemoryUsed)),
      device_memory_total_(GaugeFamily(kDeviceMemoryTotal)),
      device_job_(GaugeFamily(kDeviceJob)) {
  GaugeFamily(kBuildInfo).Add({{"version", options_.version}}).Set(1);
  for (const DeviceInfo& device : options_.devices) {
    const Labels labels = {{"gpu_uuid", device.id}, {"gpu", device.id}, {"host", options_.host}};
    device_utilization_.Add(labels).Set(0);
    device_memory_used_.Add(labels).Set(0);
    device_memory_total_.Add(labels).Set(static_cast<double>(device.memory_total_bytes));
  }
}

Metrics::Gauges& Metrics::GaugeFamily(const MetricInfo& info) {
  return prometheus::BuildGauge().Name(info.name).Help(info.help).Register(registry_);
}

Metrics::Counters& Metrics::CounterFamily(const MetricInfo& info) {
  return prometheus::BuildCounter().Name(info.name).Help(info.help).Register(registry_);
}

Metrics::Histograms& Metrics::HistogramFamily(const MetricInfo& info) {
  return prometheus::BuildHistogram().Name(info.name).Help(info.help).Register(registry_);
}

void Metrics::Observe(Histograms& family, const Labels& labels, absl::Duration duration) {
  family.Add(labels, Buckets()).Observe(absl::ToDoubleSeconds(duration));
}

void Metrics::SetJobCounts(const std::map<v1::Job::State, int64_t>& counts) {
  for (int number = v1::Job::QUEUED; number <= v1::Job::State_MAX; ++number) {
    const auto state = static_cast<v1::Job::State>(number);
    const auto found = counts.find(state);
    jobs_.Add({{"state", StateName(state)}})
        .Set(found == counts.end() ? 0.0 : static_cast<double>(found->second));
  }
}

void Metrics::OnCommitted(const v1::Job& job, const std::vector<v1::Event>& events) {
  for (const v1::Event& event : events) {
    if (event.has_state_change()) OnStateChange(job, event);
    if (event.has_step()) OnStep(job, event.step());
    if (event.has_eval()) {
      absl::MutexLock lock(&mutex_);
      JobSeries* series = SeriesOf(job);
      if (series != nullptr) SetTraining(*series, eval_loss_, event.eval().loss());
    }
  }
}

void Metrics::OnDeleted(v1::Job::State state) {
  jobs_.Add({{"state", StateName(state)}}).Decrement();
}

void Metrics::OnStateChange(const v1::Job& job, const v1::Event& event) {
  const v1::StateChange& change = event.state_change();
  jobs_.Add({{"state", StateName(change.to())}}).Increment();
  SetDeviceJob(job, HoldsDevices(change.to()));
  // A new job comes from nowhere.
  if (change.from() == v1::Job::STATE_UNSPECIFIED) return;
  jobs_.Add({{"state", StateName(change.from())}}).Decrement();
  transitions_.Add({{"from", StateName(change.from())}, {"to", StateName(change.to())}})
      .Increment();
  if (change.to() == v1::Job::STARTING && event.attempt() == 1) {
    Observe(queue_wait_, {}, ToTime(event.time()) - ToTime(job.create_time()));
  }
  if (!IsTerminal(change.to())) return;
  finished_
      .Add({{"result", absl::AsciiStrToLower(StateName(change.to()))}, {"reason", change.reason()}})
      .Increment();
  absl::MutexLock lock(&mutex_);
  const auto found = series_.find(job.uid());
  if (found != series_.end()) found->second.ended = clock_.Now();
}

void Metrics::SetDeviceJob(const v1::Job& job, bool held) {
  if (!job.has_attempt()) return;
  const int64_t attempt_start = static_cast<int64_t>(job.attempt().name().rfind('/')) + 1;
  for (const std::string& device : job.attempt().devices()) {
    prometheus::Gauge& info = device_job_.Add(
        {{"gpu_uuid", device},
         {"job_id", JobId(job)},
         {"attempt", job.attempt().name().substr(static_cast<size_t>(attempt_start))}});
    info.Set(1);
    if (held) continue;
    device_job_.Remove(&info);
    const Labels labels = {{"gpu_uuid", device}, {"gpu", device}, {"host", options_.host}};
    device_utilization_.Add(labels).Set(0);
    device_memory_used_.Add(labels).Set(0);
  }
}

void Metrics::OnStep(const v1::Job& job, const v1::StepMetrics& step) {
  SetDevices(job, step);
  SetDeviceJob(job, true);
  absl::MutexLock lock(&mutex_);
  JobSeries* series = SeriesOf(job);
  if (series == nullptr) return;
  const v1::Progress& progress = job.progress();
  SetTraining(*series, loss_, step.loss());
  SetTraining(*series, grad_norm_, step.grad_norm());
  SetTraining(*series, learning_rate_, step.learning_rate());
  SetTraining(*series, step_, static_cast<double>(step.step()));
  SetTraining(*series, eta_, progress.eta_seconds());
  SetTraining(*series, tokens_per_second_, step.tokens_per_second());
  if (progress.total_steps() > 0) {
    SetTraining(*series, progress_,
                static_cast<double>(step.step()) / static_cast<double>(progress.total_steps()));
  }
  SetTraining(*series, job_memory_, static_cast<double>(step.memory_bytes()),
              {{"kind", "allocated"}});
  SetTraining(*series, job_memory_, static_cast<double>(step.peak_memory_bytes()),
              {{"kind", "peak"}});
  for (const auto& [phase, seconds] : step.phase_seconds()) {
    SetTraining(*series, step_duration_, seconds, {{"phase", phase}});
  }
  // The job's own count goes on where the daemon before this one left it.
  series->tokens->Increment(
      std::max(0.0, static_cast<double>(progress.tokens()) - series->tokens->Value()));
}

void Metrics::SetDevices(const v1::Job& job, const v1::StepMetrics& step) {
  const auto& held = job.attempt().devices();
  for (const DeviceInfo& device : options_.devices) {
    if (std::count(held.begin(), held.end(), device.id) == 0) continue;
    const Labels labels = {{"gpu_uuid", device.id}, {"gpu", device.id}, {"host", options_.host}};
    device_utilization_.Add(labels).Set(std::min(1.0, step.cpu_cores() / device.cores));
    device_memory_used_.Add(labels).Set(static_cast<double>(step.memory_bytes()));
  }
}

Metrics::JobSeries* Metrics::SeriesOf(const v1::Job& job) {
  const auto found = series_.find(job.uid());
  if (found != series_.end()) return found->second.labels.empty() ? nullptr : &found->second;
  const auto has_labels = [](const auto& entry) { return !entry.second.labels.empty(); };
  const auto used = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::count_if(series_.begin(), series_.end(), has_labels);
  };
  const auto limit = static_cast<std::ptrdiff_t>(options_.max_job_series);
  // Ended jobs make room before a running one goes without.
  if (used() >= limit) DropSeriesEndedBefore(absl::InfiniteFuture());
  JobSeries& series = series_[job.uid()];
  if (used() >= limit) {
    series_dropped_.Increment();
    return nullptr;
  }
  series.labels = JobLabels(job);
  series.tokens = &tokens_.Add(series.labels);
  return &series;
}

void Metrics::SetTraining(JobSeries& series, Gauges& family, double value, const Labels& more) {
  Labels labels = series.labels;
  labels.insert(more.begin(), more.end());
  prometheus::Gauge& gauge = family.Add(labels);
  gauge.Set(value);
  const std::pair<Gauges*, prometheus::Gauge*> entry{&family, &gauge};
  const auto known = std::find(series.gauges.begin(), series.gauges.end(), entry);
  if (known == series.gauges.end()) series.gauges.push_back(entry);
}

void Metrics::DropSeriesEndedBefore(absl::Time time) {
  for (auto entry = series_.begin(); entry != series_.end();) {
    JobSeries& series = entry->second;
    if (series.ended >= time) {
      ++entry;
      continue;
    }
    for (const auto& [family, gauge] : series.gauges) family->Remove(gauge);
    if (series.tokens != nullptr) tokens_.Remove(series.tokens);
    entry = series_.erase(entry);
  }
}

void Metrics::OnSubmitted(SubmitResult result, absl::Duration duration) {
  submitted_.Add({{"result", std::string(ResultName(result))}}).Increment();
  if (result == SubmitResult::kAccepted) Observe(submit_duration_, {}, duration);
}

void Metrics::ObserveSchedulerCycle(absl::Duration duration) {
  Observe(scheduler_cycle_, {}, duration);
}

void Metrics::ObserveTransaction(const std::string& operation, absl::Duration duration) {
  Observe(transaction_duration_, {{"op", operation}}, duration);
}

void Metrics::OnBug() { bugs_.Increment(); }

void Metrics::OnRpcFinished(const std::string& method, absl::StatusCode code,
                            absl::Duration duration) {
  rpcs_.Add({{"grpc_method", method}, {"grpc_code", absl::StatusCodeToString(code)}}).Increment();
  Observe(rpc_duration_, {{"grpc_method", method}}, duration);
}

void Metrics::OnStreamsChanged(const std::string& method, int change) {
  streams_.Add({{"stream", method}}).Increment(change);
}

void Metrics::SetHeartbeatSource(std::function<HeartbeatAges()> source) {
  absl::MutexLock lock(&mutex_);
  heartbeat_source_ = std::move(source);
}

void Metrics::UpdateHeartbeats() {
  std::function<HeartbeatAges()> source;
  {
    absl::MutexLock lock(&mutex_);
    source = heartbeat_source_;
  }
  const HeartbeatAges ages = source ? source() : HeartbeatAges();
  absl::MutexLock lock(&mutex_);
  for (const auto& [worker, gauge] : heartbeats_) heartbeat_age_.Remove(gauge);
  heartbeats_.clear();
  for (const auto& [worker, age] : ages) {
    prometheus::Gauge& gauge = heartbeat_age_.Add({{"worker", worker}});
    gauge.Set(absl::ToDoubleSeconds(age));
    heartbeats_[worker] = &gauge;
  }
}

std::string Metrics::Render() {
  UpdateHeartbeats();
  {
    absl::MutexLock lock(&mutex_);
    DropSeriesEndedBefore(clock_.Now() - options_.series_linger);
  }
  return RenderText(registry_.Collect());
}

}  // namespace traind::metrics
