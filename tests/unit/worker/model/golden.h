// Reading golden files of models.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "worker/data/packed_batch.h"

namespace traind {

// Parses tests/golden/`path`.
inline nlohmann::json ReadGolden(const std::string& path) {
  std::ifstream file(std::string(TRAIND_TEST_DATA) + "/golden/" + path);
  EXPECT_TRUE(file.is_open()) << path;
  return nlohmann::json::parse(file);
}

// A row of which every token is a label.
inline Example FullySupervised(std::vector<int32_t> ids) {
  Example example;
  example.supervised.assign(ids.size(), 1);
  example.input_ids = std::move(ids);
  return example;
}

inline PackedBatch Pack(const std::vector<Example>& examples) {
  std::vector<const Example*> pointers;
  for (const Example& example : examples) pointers.push_back(&example);
  return PackExamples(pointers);
}

}  // namespace traind
