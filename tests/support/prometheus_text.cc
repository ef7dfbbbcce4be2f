#include "tests/support/prometheus_text.h"

#include <regex>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace traind {
namespace {

absl::Status Bad(const std::string& line, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(why, ": ", line));
}

// The family that a sample belongs to, given the one whose TYPE came last.
bool BelongsTo(const std::string& name, const std::string& family, const std::string& type) {
  if (type != "histogram") return name == family;
  return name == family + "_bucket" || name == family + "_sum" || name == family + "_count";
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> ParsePrometheusText(const std::string& text) {
  static const std::regex help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (?:[^\\]|\\\\|\\n)*)");
  static const std::regex type(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram))");
  static const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^\\"\n]|\\\\|\\n|\\")*",?)+\})? )re"
      R"re((NaN|[+-]Inf|-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?))re");
  if (!absl::EndsWith(text, "\n")) return absl::InvalidArgumentError("no newline at the end");
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  lines.pop_back();
  std::map<std::string, std::string> values;
  std::set<std::string> families;
  std::string helped;
  std::string family;
  std::string family_type;
  for (const std::string& line : lines) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      helped = match[1];
      if (!families.insert(helped).second) return Bad(line, "a family in two places");
    } else if (std::regex_match(line, match, type)) {
      family = match[1];
      family_type = match[2];
      if (family != helped) return Bad(line, "TYPE without HELP before it");
    } else if (std::regex_match(line, match, sample)) {
      if (!BelongsTo(match[1], family, family_type)) return Bad(line, "sample outside its family");
      if (!values.emplace(match[1].str() + match[2].str(), match[3]).second) {
        return Bad(line, "a series twice");
      }
    } else {
      return Bad(line, "not a line of the format");
    }
  }
  return values;
}

}  // namespace traind
