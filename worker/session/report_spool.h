// Reports on disk, until the daemon has committed them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "traind/worker/v1/worker_service.pb.h"

namespace traind {

// One attempt's reports, numbered 1, 2, 3 … in the order of Append, in one file.
//
// The file is a run of frames: payload length (u32), CRC-32 of number and payload (u32), number
// (u64), all little-endian, then the payload, a serialised Report. An empty payload says only that
// every report up to its number was acknowledged and is gone. A crash of the process loses
// nothing; a power cut loses what was appended after the last Sync. A torn last frame is ignored
// and written over.
//
// While the disk is full, reports wait in memory (bounded) and are sent from there.
// Thread-safe. The lock is held across small reads and writes of the file, never across a sync.
class ReportSpool {
 public:
  // Creates the file or continues after its last whole frame. A file of at least `trim_bytes` is
  // emptied once all of it is acknowledged. Errors: OUTPUT_FAILED, DISK_FULL.
  static absl::StatusOr<std::unique_ptr<ReportSpool>> Open(const std::string& path,
                                                           int64_t trim_bytes = 16 << 20);
  ~ReportSpool();
  ReportSpool(const ReportSpool&) = delete;
  ReportSpool& operator=(const ReportSpool&) = delete;

  // The newest number; 0 if there is none.
  int64_t last_number() const;

  // Numbers and keeps `report`; returns its number. Errors: RESOURCE_EXHAUSTED (DISK_FULL) if the
  // disk is full and so much waits in memory that a report is dropped before it gets a number.
  // A `finished` report is never dropped.
  absl::StatusOr<int64_t> Append(worker::v1::Report report);

  // Makes durable what was appended, as far as the disk has room.
  absl::Status Sync();

  // The reports after `number`, oldest first, at most `limit`.
  absl::StatusOr<std::vector<worker::v1::Report>> ReadAfter(int64_t number, size_t limit);

  // Reports up to `number` are not needed any more.
  void Acknowledge(int64_t number);

 private:
  // Frames with a greater number than `number` begin at `offset`.
  struct Position {
    int64_t number = 0;
    int64_t offset = 0;
  };
  struct Frame {
    int64_t number = 0;
    std::string payload;
    int64_t end = 0;
  };

  ReportSpool(int descriptor, std::string path, int64_t trim_bytes);
  // Whether a whole frame begins at `offset`; if so, reads it.
  bool ReadFrame(int64_t offset, Frame& frame) const;
  void Recover();
  absl::Status WriteFrame(const std::string& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status WriteWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Position Seek(int64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TrimIfLarge() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int descriptor_;
  const std::string path_;
  const int64_t trim_bytes_;
  mutable absl::Mutex mutex_;
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t end_ ABSL_GUARDED_BY(mutex_) = 0;  // Where the next frame goes.
  Position acknowledged_ ABSL_GUARDED_BY(mutex_);
  Position read_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> waiting_
      ABSL_GUARDED_BY(mutex_);  // Frames that the disk had no room for.
  size_t waiting_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace traind
