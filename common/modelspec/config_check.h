// Checks that hold for every ModelConfig, whatever file it came from.
#pragma once

#include <string>
#include <vector>

#include "common/modelspec/model_config.h"

namespace traind {

// What is impossible about the sizes; empty if nothing. Bounds keep products of sizes in 64 bits.
std::vector<std::string> CheckModelConfig(const ModelConfig& config);

}  // namespace traind
