// A checkpoint that comes in pieces and is nothing until it is whole.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "traind/v1/checkpoint.pb.h"

namespace traind::client {

// Collects the files of a checkpoint in `{folder}.partial` and gives them their name when all are
// whole and right. Thread-compatible.
//
// After a crash the partial folder stays; Open goes on with it. `{folder}` is either missing or
// complete and durable.
class CheckpointDownload {
 public:
  // Errors: DATA_LOSS if the file list names a path outside of the folder or twice the same;
  // DISK_FULL, PERMISSION_DENIED.
  static absl::StatusOr<CheckpointDownload> Open(const v1::Checkpoint& checkpoint,
                                                 const std::string& folder);

  const v1::Checkpoint& checkpoint() const { return checkpoint_; }

  // Bytes that are there, counted over the files laid end to end: the offset to ask for.
  int64_t bytes_done() const;
  bool complete() const;

  // DATA_LOSS (CHECKPOINT_CORRUPT) for a chunk that does not fit the list of files.
  absl::Status Append(const v1::CheckpointChunk& chunk);

  // Compares every SHA-256, makes the files durable and renames the folder. DATA_LOSS
  // (CHECKPOINT_CORRUPT) for a wrong file, which is removed so that the next try fetches it anew.
  // REQUIRES: complete().
  absl::Status Finish();

 private:
  CheckpointDownload(v1::Checkpoint checkpoint, std::string folder);

  std::string PartialPath(int file) const;
  absl::Status BeginFile(const v1::CheckpointChunk& chunk);
  absl::Status VerifyFile(int file) const;

  v1::Checkpoint checkpoint_;
  std::string folder_;
  std::string partial_;
  int file_ = 0;      // The file that grows; files before it are whole.
  int64_t size_ = 0;  // Its size so far.
};

}  // namespace traind::client
