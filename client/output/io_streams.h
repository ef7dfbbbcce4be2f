// Where a command reads and writes, so that tests can hold it.
//
// stdout carries data, stderr carries messages; a pipe gets neither colour nor redrawing.
#pragma once

#include <iosfwd>
#include <istream>
#include <ostream>

namespace traind::client {

// Borrowed streams and what is known about them. Thread-compatible.
struct IoStreams {
  std::istream* in = nullptr;
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colour = false;  // Only with a terminal, and never with NO_COLOR or TERM=dumb.
  int width = 80;       // Columns of the terminal.
};

// stdin, stdout and stderr of the process.
IoStreams SystemStreams();

}  // namespace traind::client
