// Streams of a command that are buffers.
#pragma once

#include <sstream>
#include <string>

#include "client/output/io_streams.h"

namespace traind::client {

// Not a terminal unless a test says so. Owns what `io` points at.
class TestStreams {
 public:
  TestStreams() {
    io.in = &in;
    io.out = &out;
    io.err = &err;
  }
  TestStreams(const TestStreams&) = delete;
  TestStreams& operator=(const TestStreams&) = delete;

  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  IoStreams io;
};

}  // namespace traind::client
