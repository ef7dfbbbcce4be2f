// manifest.json, which makes a checkpoint's folder valid:
//
//   {"format_version": 1, "step": 40, "create_time": "2026-01-31T12:00:00Z",
//    "files": [{"path": "optimizer.bin", "size_bytes": 123, "sha256": "ab…"}]}
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "traind/v1/checkpoint.pb.h"

namespace traind::artifacts {

inline constexpr char kManifestFile[] = "manifest.json";

// Fills `step`, `create_time` and `files`. Errors: DATA_LOSS (CHECKPOINT_CORRUPT), naming `path`
// and what is wrong; a file's path must be a plain name.
absl::StatusOr<v1::Checkpoint> ParseManifest(absl::string_view json, const std::string& path);

}  // namespace traind::artifacts
