// Prometheus' text format 0.0.4.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

namespace traind::metrics {

// Numbers with a point whatever the locale, `NaN`, `+Inf` and `-Inf` spelled so, help texts and
// label values escaped, one HELP and TYPE for each family that has a sample. prometheus-cpp's own
// serializer writes `Nan` and leaves help texts as they are.
std::string RenderText(const std::vector<prometheus::MetricFamily>& families);

}  // namespace traind::metrics
