// The toy byte tokenizer of tests/golden/bytetok: id = 10 + byte; 0 to 9 are special tokens.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/golden_json.h"
#include "worker/text/text_model.h"

namespace traind {

// A new empty folder of the running test.
inline std::string NewTestFolder(const std::string& name) {
  static int count = 0;
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = testing::TempDir() + "/" + test->test_suite_name() + "." + test->name() +
                           "." + name + std::to_string(count++);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  return path;
}

inline std::string WriteTestFile(const std::string& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary);
  file << contents;
  file.close();
  EXPECT_TRUE(file.good()) << path;
  return path;
}

// A folder with the tokenizer and its tokenizer_config.json after `patch` (a JSON merge patch).
inline std::string BytetokFolder(const nlohmann::ordered_json& patch) {
  const std::string folder = NewTestFolder("bytetok");
  WriteTestFile(folder + "/tokenizer.json", GoldenText("bytetok/tokenizer.json"));
  nlohmann::ordered_json config = GoldenJson("bytetok/tokenizer_config.json");
  config.merge_patch(patch);
  WriteTestFile(folder + "/tokenizer_config.json", config.dump());
  return folder;
}

inline TextModel Bytetok(const nlohmann::ordered_json& patch = nlohmann::ordered_json::object()) {
  auto model = LoadTextModel(BytetokFolder(patch));
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

}  // namespace traind
