// The program `traind`: its flags, its signals, its exit code.
#pragma once

namespace traind::daemon {

// Returns the exit code: 0 after SIGTERM or SIGINT, 1 after an error (one line on stderr), 2 for
// wrong flags.
int DaemonMain(int argc, char** argv);

}  // namespace traind::daemon
