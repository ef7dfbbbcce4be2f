// Which known name a misspelt one was meant to be.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace traind::jobspec {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
int EditDistance(absl::string_view a, absl::string_view b);

// The candidate that is nearest to `name`, where case, `-` and camel case count for nothing; empty
// if none is near: at most a third of the letters may differ, and at least one may.
std::string NearestName(absl::string_view name, const std::vector<std::string>& candidates);

}  // namespace traind::jobspec
