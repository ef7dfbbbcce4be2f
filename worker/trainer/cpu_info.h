// What the processor offers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace traind {

// Instruction sets of this processor among those that matter here, such as `avx2`.
std::vector<std::string> CpuFeatures();

// Errors: FAILED_PRECONDITION (LAUNCH_FAILED) naming what is missing, if the worker's kernels
// (AVX2 and FMA) cannot run here.
absl::Status CheckCpu(const std::vector<std::string>& features);

// Physical cores that this process may run on; at least 1.
int PhysicalCores();

}  // namespace traind
