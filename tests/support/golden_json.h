// Files of tests/golden.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace traind {

// The path of a file below tests/golden.
inline std::string GoldenPath(const std::string& name) {
  return std::string(TRAIND_TEST_DATA) + "/golden/" + name;
}

inline std::string GoldenText(const std::string& name) {
  std::ifstream file(GoldenPath(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << GoldenPath(name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline nlohmann::ordered_json GoldenJson(const std::string& name) {
  return nlohmann::ordered_json::parse(GoldenText(name));
}

}  // namespace traind
