// A folder that lives as long as the test.
#pragma once

#include <cstdlib>
#include <string>

#include "common/os/file.h"
#include "gtest/gtest.h"

namespace traind {

class TempDir {
 public:
  TempDir() {
    std::string name = testing::TempDir() + "traind-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { EXPECT_TRUE(RemoveAll(path_).ok()); }

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace traind
