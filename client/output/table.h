// Aligned columns.
#pragma once

#include <string>
#include <vector>

#include "client/output/io_streams.h"

namespace traind::client {

// Rows under headers. Thread-compatible.
class Table {
 public:
  explicit Table(std::vector<std::string> headers);

  // REQUIRES: one cell for each header. An empty cell is shown as `-`.
  void AddRow(std::vector<std::string> cells);

  // On a terminal lines are cut at its width and states get a colour; a pipe gets everything.
  void Print(const IoStreams& io) const;

 private:
  std::vector<std::vector<std::string>> rows_;  // The first one holds the headers.
};

// `name: value` lines with the values in one column.
class KeyValues {
 public:
  // Nothing is shown for an empty value.
  void Add(std::string key, std::string value);
  void Print(const IoStreams& io, int indent = 0) const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

// `text`, which names a state of a job or the result of a check, in the colour of its meaning if
// `io` has colours.
std::string ColourState(const IoStreams& io, const std::string& text);

}  // namespace traind::client
