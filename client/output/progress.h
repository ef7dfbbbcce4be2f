// Bars and curves of one line.
#pragma once

#include <string>
#include <vector>

namespace traind::client {

// `width` columns, `done` of `total` filled; empty if `total` is 0.
std::string ProgressBar(double done, double total, int width);

// The values as a curve of at most `width` columns from lowest to highest; neighbours are averaged
// if there are more values than columns. A value that is not finite is a `×`.
std::string Sparkline(const std::vector<double>& values, int width);

}  // namespace traind::client
