// trainctl: the command line of traind.
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "client/cli/app.h"

namespace {

traind::client::Interrupt interrupt;

// The first Ctrl-C lets the command end in order; the second one ends the program.
void OnSignal(int) {
  if (interrupt.requested()) _exit(3);
  interrupt.Request();
}

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // Errors are told once, by us.
  return traind::client::RunApp({argv + 1, argv + argc},
                                {traind::client::SystemStreams(), Variable, &interrupt});
}
