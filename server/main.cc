#include "server/daemon/daemon_main.h"

int main(int argc, char** argv) { return traind::daemon::DaemonMain(argc, argv); }
