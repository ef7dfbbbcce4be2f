// Everything that Prometheus can read from the daemon: names, help texts, and how they get values.
//
// Metrics follow from what was committed: the controller hands over each job with the events of a
// commit, and states, transitions, training and device values are taken from those.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/os/clock.h"
#include "traind/v1/event.pb.h"
#include "traind/v1/job.pb.h"

namespace traind::metrics {

struct MetricInfo {
  const char* name;
  const char* help;
};

// Control plane.
inline constexpr MetricInfo kBuildInfo{"traind_build_info", "Always 1; the version is a label."};
inline constexpr MetricInfo kJobs{"traind_jobs", "Jobs that are stored, by state."};
inline constexpr MetricInfo kJobsSubmitted{
    "traind_jobs_submitted_total",
    "CreateJob calls by result: accepted, replayed (a known request id) or rejected."};
inline constexpr MetricInfo kJobsFinished{"traind_jobs_finished_total",
                                          "Jobs that ended, by result and reason."};
inline constexpr MetricInfo kTransitions{"traind_job_transitions_total",
                                         "Changes of a job's state."};
inline constexpr MetricInfo kSubmitDuration{"traind_submit_duration_seconds",
                                            "Time from a CreateJob call to the job being durable."};
inline constexpr MetricInfo kQueueWait{
    "traind_queue_wait_seconds", "Time from a job's creation to its first placement on devices."};
inline constexpr MetricInfo kSchedulerCycle{"traind_scheduler_cycle_duration_seconds",
                                            "Time to make one plan."};
inline constexpr MetricInfo kTransactionDuration{"traind_db_transaction_duration_seconds",
                                                 "Time to commit a change, by operation."};
inline constexpr MetricInfo kHeartbeatAge{"traind_worker_heartbeat_age_seconds",
                                          "Time since a worker's last sign of life."};
inline constexpr MetricInfo kBugs{"traind_bugs_total",
                                  "Defects of traind itself that it noticed and survived."};
inline constexpr MetricInfo kSeriesDropped{
    "traind_metrics_series_dropped_total",
    "Jobs without training series because too many jobs have some."};
inline constexpr MetricInfo kStreams{"traind_stream_subscribers", "Open streams to clients."};
inline constexpr MetricInfo kRpcs{"grpc_server_handled_total", "Finished calls, by code."};
inline constexpr MetricInfo kRpcDuration{"grpc_server_handling_seconds",
                                         "Duration of finished calls."};

// Training: series of a job with the labels job_id and name, from its first update until a while
// after its end.
inline constexpr MetricInfo kTrainLoss{
    "traind_train_loss", "Mean training loss of the updates since the report before."};
inline constexpr MetricInfo kEvalLoss{"traind_train_eval_loss", "The newest evaluation loss."};
inline constexpr MetricInfo kGradNorm{"traind_train_grad_norm",
                                      "L2 norm of the newest update's gradient before clipping."};
inline constexpr MetricInfo kLearningRate{"traind_train_learning_rate",
                                          "Learning rate of the newest update."};
inline constexpr MetricInfo kStep{"traind_train_step", "Updates done."};
inline constexpr MetricInfo kProgress{"traind_train_progress_ratio",
                                      "Updates done as a share of the updates planned."};
inline constexpr MetricInfo kEta{"traind_train_eta_seconds",
                                 "Time until the last update, at the measured pace."};
inline constexpr MetricInfo kTokens{"traind_train_tokens_total", "Tokens through the model."};
inline constexpr MetricInfo kTokensPerSecond{"traind_train_tokens_per_second",
                                             "Tokens through the model each second."};
inline constexpr MetricInfo kStepDuration{"traind_train_step_duration_seconds",
                                          "Time of the newest update, by phase."};
inline constexpr MetricInfo kJobMemory{"traind_job_gpu_memory_bytes",
                                       "Memory of the worker: allocated now, and at its peak."};

// Devices, by gpu_uuid; a processor slot counts as one. Joined to jobs by traind_gpu_job_info.
inline constexpr MetricInfo kDeviceUtilization{"traind_gpu_utilization_ratio",
                                               "Share of the device's time in use."};
inline constexpr MetricInfo kDeviceMemoryUsed{"traind_gpu_memory_used_bytes",
                                              "Memory that workers use on the device."};
inline constexpr MetricInfo kDeviceMemoryTotal{"traind_gpu_memory_total_bytes",
                                               "Memory of the device."};
inline constexpr MetricInfo kDeviceJob{"traind_gpu_job_info",
                                       "Always 1; which job holds which device."};

struct DeviceInfo {
  std::string id;  // Such as `cpu0`.
  int64_t memory_total_bytes = 0;
  double cores = 1;  // Processor cores that stand for full use.
};

struct MetricsOptions {
  std::string version;
  std::string host;
  std::vector<DeviceInfo> devices;
  size_t max_job_series = 100;                      // Jobs with training series at once.
  absl::Duration series_linger = absl::Minutes(5);  // How long they stay after the end.
};

enum class SubmitResult { kAccepted, kReplayed, kRejected };

// Thread-safe.
class Metrics {
 public:
  // `clock` is borrowed and outlives the metrics.
  Metrics(MetricsOptions options, const Clock& clock);

  // What was stored when the daemon started.
  void SetJobCounts(const std::map<v1::Job::State, int64_t>& counts);
  // A commit: the job as stored, and its new events.
  void OnCommitted(const v1::Job& job, const std::vector<v1::Event>& events);
  void OnDeleted(v1::Job::State state);

  void OnSubmitted(SubmitResult result, absl::Duration duration);
  void ObserveSchedulerCycle(absl::Duration duration);
  // `operation` such as `create` or `reports`.
  void ObserveTransaction(const std::string& operation, absl::Duration duration);
  void OnBug();
  void OnRpcFinished(const std::string& method, absl::StatusCode code, absl::Duration duration);
  void OnStreamsChanged(const std::string& method, int change);

  // Asked at each scrape: (attempt uid, age).
  using HeartbeatAges = std::vector<std::pair<std::string, absl::Duration>>;
  void SetHeartbeatSource(std::function<HeartbeatAges()> source);

  // The answer to a scrape, in Prometheus' text format 0.0.4.
  std::string Render();

 private:
  using Gauges = prometheus::Family<prometheus::Gauge>;
  using Counters = prometheus::Family<prometheus::Counter>;
  using Histograms = prometheus::Family<prometheus::Histogram>;

  struct JobSeries {
    prometheus::Labels labels;
    std::vector<std::pair<Gauges*, prometheus::Gauge*>> gauges;
    prometheus::Counter* tokens = nullptr;
    absl::Time ended = absl::InfiniteFuture();
  };

  Gauges& GaugeFamily(const MetricInfo& info);
  Counters& CounterFamily(const MetricInfo& info);
  Histograms& HistogramFamily(const MetricInfo& info);
  void Observe(Histograms& family, const prometheus::Labels& labels, absl::Duration duration);

  void OnStateChange(const v1::Job& job, const v1::Event& event);
  void OnStep(const v1::Job& job, const v1::StepMetrics& step);
  void SetDevices(const v1::Job& job, const v1::StepMetrics& step);
  void SetDeviceJob(const v1::Job& job, bool held);
  // The job's series, made if there is room; null if there is none.
  JobSeries* SeriesOf(const v1::Job& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetTraining(JobSeries& series, Gauges& family, double value,
                   const prometheus::Labels& more = {}) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropSeriesEndedBefore(absl::Time time) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateHeartbeats();

  const MetricsOptions options_;
  const Clock& clock_;
  prometheus::Registry registry_;

  Gauges& jobs_;
  Counters& submitted_;
  Counters& finished_;
  Counters& transitions_;
  Histograms& submit_duration_;
  Histograms& queue_wait_;
  Histograms& scheduler_cycle_;
  Histograms& transaction_duration_;
  Gauges& heartbeat_age_;
  prometheus::Counter& bugs_;
  prometheus::Counter& series_dropped_;
  Gauges& streams_;
  Counters& rpcs_;
  Histograms& rpc_duration_;
  Gauges& loss_;
  Gauges& eval_loss_;
  Gauges& grad_norm_;
  Gauges& learning_rate_;
  Gauges& step_;
  Gauges& progress_;
  Gauges& eta_;
  Counters& tokens_;
  Gauges& tokens_per_second_;
  Gauges& step_duration_;
  Gauges& job_memory_;
  Gauges& device_utilization_;
  Gauges& device_memory_used_;
  Gauges& device_memory_total_;
  Gauges& device_job_;

  absl::Mutex mutex_;
  std::map<std::string, JobSeries> series_ ABSL_GUARDED_BY(mutex_);  // By job uid.
  std::map<std::string, prometheus::Gauge*> heartbeats_ ABSL_GUARDED_BY(mutex_);
  std::function<HeartbeatAges()> heartbeat_source_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind::metrics
