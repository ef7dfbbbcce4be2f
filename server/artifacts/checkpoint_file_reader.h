// Reads one file of a checkpoint and checks it on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/os/sha256.h"
#include "traind/v1/checkpoint.pb.h"

namespace traind::artifacts {

// Reads from start to end. Thread-compatible.
class CheckpointFileReader {
 public:
  // `file` is one of `checkpoint.files()`. Errors: NOT_FOUND (CHECKPOINT_NOT_FOUND) if it is gone,
  // DATA_LOSS (CHECKPOINT_CORRUPT) if it is not a plain file of the right size, or its name would
  // lead out of the checkpoint's folder.
  static absl::StatusOr<std::unique_ptr<CheckpointFileReader>> Open(
      const v1::Checkpoint& checkpoint, const v1::CheckpointFile& file);
  ~CheckpointFileReader();
  CheckpointFileReader(const CheckpointFileReader&) = delete;
  CheckpointFileReader& operator=(const CheckpointFileReader&) = delete;

  const v1::CheckpointFile& file() const { return file_; }

  // The next at most `max_bytes` bytes; empty at the end. Errors: DATA_LOSS (CHECKPOINT_CORRUPT) in
  // place of the end if the bytes are not those of the manifest.
  absl::StatusOr<std::string> Read(size_t max_bytes);

 private:
  CheckpointFileReader(int descriptor, std::string path, v1::CheckpointFile file)
      : descriptor_(descriptor), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status CheckHash();

  int descriptor_;
  std::string path_;
  v1::CheckpointFile file_;
  Sha256 hash_;
  bool checked_ = false;
};

// Opens `name` inside `folder`, for reading. Symbolic links are not followed, neither the folder
// nor the file, and a name with a `/` is refused, so that nothing outside is read. Returns a
// descriptor that the caller closes. Errors: as Open.
absl::StatusOr<int> OpenInFolder(const std::string& folder, const std::string& name);

}  // namespace traind::artifacts
