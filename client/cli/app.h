// The whole program: parse the command line, run one command, tell how it went.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/output/io_streams.h"
#include "client/rpc/interrupt.h"

namespace traind::client {

// What the program gets from its process.
struct AppEnvironment {
  IoStreams io;
  std::function<std::string(const char*)> variable;  // Empty if not set.
  const Interrupt* interrupt = nullptr;
};

// `arguments` without the program's name. Returns the exit code.
int RunApp(std::vector<std::string> arguments, AppEnvironment environment);

}  // namespace traind::client
