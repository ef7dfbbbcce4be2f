#include "client/output/table.h"

#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/output/format.h"

namespace traind::client {
namespace {

constexpr absl::string_view kGap = "  ";

std::string Pad(const std::string& text, int width) {
  return absl::StrCat(
      text, std::string(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' '));
}

}  // namespace

std::string ColourState(const IoStreams& io, const std::string& text) {
  static const auto* const kColours = new std::map<std::string, const char*>{
      {"SUCCEEDED", "\x1b[32m"}, {"OK", "\x1b[32m"},       {"FAILED", "\x1b[31m"},
      {"CANCELLED", "\x1b[33m"}, {"WARNING", "\x1b[33m"},  {"CANCELLING", "\x1b[33m"},
      {"RUNNING", "\x1b[36m"},   {"STARTING", "\x1b[36m"}, {"QUEUED", "\x1b[2m"}};
  const auto found = kColours->find(std::string(absl::StripAsciiWhitespace(text)));
  if (!io.colour || found == kColours->end()) return text;
  return absl::StrCat(found->second, text, "\x1b[0m");
}

Table::Table(std::vector<std::string> headers) { rows_.push_back(std::move(headers)); }

void Table::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = cell.empty() ? "-" : OneLine(cell);
  rows_.push_back(std::move(cells));
}

void Table::Print(const IoStreams& io) const {
  std::vector<int> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  for (const auto& row : rows_) {
    int left = io.out_is_terminal ? io.width : 1 << 20;
    for (size_t i = 0; i < row.size() && left > 0; ++i) {
      const bool last = i + 1 == row.size();
      const std::string cell = FitWidth(last ? row[i] : Pad(row[i], widths[i]), left);
      left -= DisplayWidth(cell) + static_cast<int>(kGap.size());
      *io.out << ColourState(io, cell) << (last || left <= 0 ? "" : kGap);
    }
    *io.out << "\n";
  }
}

void KeyValues::Add(std::string key, std::string value) {
  if (!value.empty()) rows_.emplace_back(std::move(key), std::move(value));
}

void KeyValues::Print(const IoStreams& io, int indent) const {
  int width = 0;
  for (const auto& [key, value] : rows_) width = std::max(width, DisplayWidth(key));
  for (const auto& [key, value] : rows_) {
    *io.out << std::string(static_cast<size_t>(indent), ' ') << Pad(key, width) << kGap
            << ColourState(io, OneLine(value)) << "\n";
  }
}

}  // namespace traind::client
