#include "common/jobspec/nearest_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace traind::jobspec {
namespace {

// `learningRate` and `learning-rate` are `learning_rate`.
std::string SnakeCase(absl::string_view name) {
  std::string result;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto letter = static_cast<unsigned char>(name[i]);
    const bool begins_word = absl::ascii_isupper(letter) && i > 0 &&
                             absl::ascii_islower(static_cast<unsigned char>(name[i - 1]));
    if (begins_word) result.push_back('_');
    result.push_back(letter == '-' ? '_' : absl::ascii_tolower(letter));
  }
  return result;
}

}  // namespace

int EditDistance(absl::string_view a, absl::string_view b) {
  // Rows i - 2, i - 1 and i of the table of distances between prefixes.
  std::vector<int> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    older.swap(old);
    old.swap(row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int substituted = old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({old[j] + 1, row[j - 1] + 1, substituted});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], older[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates) {
  const std::string wanted = SnakeCase(name.substr(0, 128));
  std::string best;
  int best_distance = std::max(1, static_cast<int>(wanted.size()) / 3) + 1;
  for (const std::string& candidate : candidates) {
    const int distance = EditDistance(wanted, candidate);
    if (distance >= static_cast<int>(candidate.size())) continue;  // Nothing in common.
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace traind::jobspec
