// Files that survive a crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/status/reason.h"

namespace traind {

// The whole file. Errors: NOT_FOUND, PERMISSION_DENIED, INTERNAL, with `reason`.
absl::StatusOr<std::string> ReadFile(const std::string& path, Reason reason = Reason::kUnspecified);

// Writes to a temporary name, fsyncs, renames, fsyncs the folder: after a crash the file is either
// the old or the new one. Errors: RESOURCE_EXHAUSTED (DISK_FULL) and others with `reason`.
absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents,
                                 Reason reason = Reason::kOutputFailed);

// A file that is written from start to end. Thread-compatible. Not durable before Close returned
// OK.
class FileWriter {
 public:
  static absl::StatusOr<FileWriter> Create(const std::string& path,
                                           Reason reason = Reason::kOutputFailed);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  absl::Status Append(absl::string_view bytes);
  // fsyncs and closes.
  absl::Status Close();

 private:
  FileWriter(int descriptor, std::string path, Reason reason)
      : descriptor_(descriptor), path_(std::move(path)), reason_(reason) {}

  int descriptor_;
  std::string path_;
  Reason reason_;
};

// A file in memory, read-only. Thread-safe. The file must not shrink while it is mapped.
class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path, Reason reason);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  absl::string_view bytes() const { return {data_, size_}; }

 private:
  MappedFile(const char* data, size_t size) : data_(data), size_(size) {}

  const char* data_;
  size_t size_;
};

// Makes a folder's entries durable.
absl::Status SyncDirectory(const std::string& path);

// rename(2), then fsync of the folder that holds `to`.
absl::Status RenameDurably(const std::string& from, const std::string& to);

// Lets the folder `from` take the place of `to`, which may exist and is then removed; durably, and
// where the file system can, in one step. Both lie in the same folder.
absl::Status ReplaceDirectoryDurably(const std::string& from, const std::string& to);

// Like `mkdir -p`.
absl::Status CreateDirectories(const std::string& path);

// Like `rm -rf`. A missing path is no error.
absl::Status RemoveAll(const std::string& path);

// Names of a folder's entries, sorted, without `.` and `..`.
absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path);

bool FileExists(const std::string& path);

}  // namespace traind
