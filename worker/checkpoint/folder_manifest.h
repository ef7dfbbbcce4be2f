// manifest.json, which makes a folder of files valid. No LibTorch.
//
// It is written last and lists every other file with size and SHA-256, so a folder whose manifest
// does not hold is a leftover of a crash or damaged. docs/checkpoint-format.md describes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace traind {

inline constexpr char kManifestFile[] = "manifest.json";

struct ManifestFile {
  std::string path;  // Name below the folder.
  int64_t size_bytes = 0;
  std::string sha256;  // Lower-case hex.
};

struct FolderManifest {
  int64_t step = 0;
  std::string run_id;  // The run that wrote it; never two runs with the same.
  absl::Time create_time;
  std::vector<ManifestFile> files;

  int64_t size_bytes() const;
};

// Lists and hashes the files of `folder` and writes their manifest, durably. Sets manifest.files.
// Errors: DISK_FULL, OUTPUT_FAILED.
absl::Status WriteManifest(const std::string& folder, FolderManifest& manifest);

// Errors: CHECKPOINT_CORRUPT if there is no manifest or it cannot be understood.
absl::StatusOr<FolderManifest> ReadManifest(const std::string& folder);

// Compares sizes, and with `hashes` contents. Errors: CHECKPOINT_CORRUPT, naming the file.
absl::Status CheckFiles(const std::string& folder, const FolderManifest& manifest, bool hashes);

// DATA_LOSS (CHECKPOINT_CORRUPT): "`path`: `text`".
absl::Status CheckpointCorrupt(const std::string& path, absl::string_view text);

}  // namespace traind
