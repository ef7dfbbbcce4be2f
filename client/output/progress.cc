#include "client/output/progress.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace traind::client {
namespace {

constexpr std::array<const char*, 8> kLevels = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// Means of `columns` neighbouring groups of about the same size.
std::vector<double> Shrink(const std::vector<double>& values, size_t columns) {
  if (values.size() <= columns) return values;
  std::vector<double> means;
  for (size_t i = 0; i < columns; ++i) {
    const size_t begin = i * values.size() / columns;
    const size_t end = (i + 1) * values.size() / columns;
    double sum = 0;
    for (size_t j = begin; j < end; ++j) sum += values[j];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

}  // namespace

std::string ProgressBar(double done, double total, int width) {
  if (total <= 0 || width < 1) return "";
  const double share = std::clamp(done / total, 0.0, 1.0);
  const int filled = static_cast<int>(std::floor(share * width));
  std::string bar;
  for (int i = 0; i < width; ++i) absl::StrAppend(&bar, i < filled ? "█" : "░");
  return bar;
}

std::string Sparkline(const std::vector<double>& values, int width) {
  if (width < 1) return "";
  const std::vector<double> means = Shrink(values, static_cast<size_t>(width));
  double low = INFINITY, high = -INFINITY;
  for (const double mean : means) {
    if (!std::isfinite(mean)) continue;
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  std::string line;
  for (const double mean : means) {
    const double share = high > low ? (mean - low) / (high - low) : 0.5;
    const size_t level = std::isfinite(mean) ? static_cast<size_t>(std::lround(share * 7)) : 0;
    absl::StrAppend(&line, std::isfinite(mean) ? kLevels[level] : "×");
  }
  return line;
}

}  // namespace traind::client
