#include "server/metrics/text_format.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace traind::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

std::string Number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

std::string EscapedHelp(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\n", "\\n"}});
}

std::string EscapedLabel(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\n", "\\n"}, {"\"", "\\\""}});
}

// One sample; `more` is a label of its own, such as `le`.
void AppendSample(const std::string& name, const ClientMetric& metric,
                  const std::pair<std::string, std::string>& more, const std::string& value,
                  std::string& out) {
  std::string labels;
  for (const ClientMetric::Label& label : metric.label) {
    absl::StrAppend(&labels, labels.empty() ? "" : ",", label.name, "=\"",
                    EscapedLabel(label.value), "\"");
  }
  if (!more.first.empty()) {
    absl::StrAppend(&labels, labels.empty() ? "" : ",", more.first, "=\"", more.second, "\"");
  }
  absl::StrAppend(&out, name, labels.empty() ? "" : "{", labels, labels.empty() ? "" : "}", " ",
                  value, "\n");
}

void AppendHistogram(const std::string& name, const ClientMetric& metric, std::string& out) {
  const ClientMetric::Histogram& histogram = metric.histogram;
  for (const ClientMetric::Bucket& bucket : histogram.bucket) {
    AppendSample(name + "_bucket", metric, {"le", Number(bucket.upper_bound)},
                 absl::StrCat(bucket.cumulative_count), out);
  }
  AppendSample(name + "_sum", metric, {}, Number(histogram.sample_sum), out);
  AppendSample(name + "_count", metric, {}, absl::StrCat(histogram.sample_count), out);
}

const char* TypeName(MetricType type) {
  switch (type) {
    case MetricType::Counter:
      return "counter";
    case MetricType::Gauge:
      return "gauge";
    case MetricType::Histogram:
      return "histogram";
    case MetricType::Summary:
    case MetricType::Untyped:
      break;
  }
  return "untyped";
}

void AppendMetric(const prometheus::MetricFamily& family, const ClientMetric& metric,
                  std::string& out) {
  if (family.type == MetricType::Histogram) return AppendHistogram(family.name, metric, out);
  const bool counts = family.type == MetricType::Counter;
  AppendSample(family.name, metric, {}, Number(counts ? metric.counter.value : metric.gauge.value),
               out);
}

}  // namespace

std::string RenderText(const std::vector<prometheus::MetricFamily>& families) {
  std::string out;
  for (const prometheus::MetricFamily& family : families) {
    if (family.metric.empty()) continue;
    absl::StrAppend(&out, "# HELP ", family.name, " ", EscapedHelp(family.help), "\n");
    absl::StrAppend(&out, "# TYPE ", family.name, " ", TypeName(family.type), "\n");
    for (const ClientMetric& metric : family.metric) AppendMetric(family, metric, out);
  }
  return out;
}

}  // namespace traind::metrics
