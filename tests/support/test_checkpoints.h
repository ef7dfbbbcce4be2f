// Checkpoint folders on disk, as a worker publishes them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/os/file.h"
#include "common/os/sha256.h"
#include "gtest/gtest.h"

namespace traind {

inline std::string Sha256Hex(const std::string& bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

inline std::string ManifestEntry(const std::string& name, const std::string& bytes) {
  return absl::StrCat(R"({"path":")", name, R"(","size_bytes":)", bytes.size(), R"(,"sha256":")",
                      Sha256Hex(bytes), R"("})");
}

inline std::string ManifestJson(int64_t step, const std::map<std::string, std::string>& files) {
  std::vector<std::string> entries;
  for (const auto& [name, bytes] : files) entries.push_back(ManifestEntry(name, bytes));
  return absl::StrCat(R"({"format_version":1,"step":)", step,
                      R"(,"create_time":"2026-01-31T12:00:00Z","files":[)",
                      absl::StrJoin(entries, ","), "]}");
}

inline void WriteFiles(const std::string& folder, const std::map<std::string, std::string>& files) {
  ASSERT_TRUE(CreateDirectories(folder).ok());
  for (const auto& [name, bytes] : files) {
    ASSERT_TRUE(WriteFileAtomically(absl::StrCat(folder, "/", name), bytes).ok());
  }
}

inline void WriteCheckpoint(const std::string& folder, int64_t step,
                            std::map<std::string, std::string> files) {
  const std::string manifest = ManifestJson(step, files);
  files["manifest.json"] = manifest;
  WriteFiles(folder, files);
}

}  // namespace traind
