#include "client/output/io_streams.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace traind::client {
namespace {

constexpr int kDefaultWidth = 80;

int TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  int columns = 0;
  const char* text = std::getenv("COLUMNS");
  return text != nullptr && absl::SimpleAtoi(text, &columns) && columns > 0 ? columns
                                                                            : kDefaultWidth;
}

// https://no-color.org: any value but the empty one switches colour off.
bool ColourAllowed() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || absl::string_view(term) == "dumb";
  return (no_color == nullptr || *no_color == '\0') && !dumb;
}

}  // namespace

IoStreams SystemStreams() {
  IoStreams io;
  io.in = &std::cin;
  io.out = &std::cout;
  io.err = &std::cerr;
  io.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  io.err_is_terminal = isatty(STDERR_FILENO) == 1;
  io.colour = io.out_is_terminal && ColourAllowed();
  io.width = TerminalWidth();
  return io;
}

}  // namespace traind::client
