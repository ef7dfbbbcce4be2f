// LibTorch as a whole: its version and its threads.
#pragma once

#include <string>

namespace traind {

std::string TorchVersion();

// Uses this many threads from now on and takes denormal numbers for zero, since they would slow
// every product down. Call it on the trainer's thread before it computes anything: the
// threads that help it inherit the setting. REQUIRES: threads >= 1.
void SetUpTorch(int threads);

}  // namespace traind
