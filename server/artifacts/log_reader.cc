#include "server/artifacts/log_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::artifacts {
namespace {

// Closes a descriptor at the end of its scope.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

absl::Status OffsetError(int64_t offset, int64_t size) {
  return Error(
      absl::StatusCode::kOutOfRange, Reason::kInvalidField,
      absl::StrCat("offset: must be between 0 and the log's ", size, " bytes; got ", offset),
      {{"field", "offset"}, {"offset", absl::StrCat(offset)}, {"size", absl::StrCat(size)}});
}

absl::StatusOr<std::string> ReadAt(int descriptor, int64_t offset, size_t count,
                                   const std::string& path) {
  std::string bytes(count, '\0');
  size_t filled = 0;
  while (filled < count) {
    const ssize_t got = ::pread(descriptor, bytes.data() + filled, count - filled,
                                offset + static_cast<int64_t>(filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, Reason::kUnspecified, "read", path);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

// How much of `data` to hand out; `is_rest` says that the file ends with it.
size_t CutAtLineEnd(const std::string& data, bool is_rest, bool complete) {
  if (is_rest && complete) return data.size();
  const size_t newline = data.rfind('\n');
  if (newline != std::string::npos) return newline + 1;
  // A line that is longer than a piece is handed out as it comes.
  return is_rest ? 0 : data.size();
}

}  // namespace

absl::StatusOr<LogPiece> ReadLog(const std::string& log_file, int64_t offset, size_t max_bytes,
                                 bool complete) {
  const OpenFile file(log_file);
  struct stat info {};
  if (file.descriptor() < 0 && errno != ENOENT) {
    return ErrnoError(errno, Reason::kUnspecified, "read", log_file);
  }
  if (file.descriptor() >= 0 && ::fstat(file.descriptor(), &info) != 0) {
    return ErrnoError(errno, Reason::kUnspecified, "read", log_file);
  }
  const int64_t size = info.st_size;
  if (offset < 0 || offset > size) return OffsetError(offset, size);
  const size_t count = std::min(max_bytes, static_cast<size_t>(size - offset));
  LogPiece piece{"", offset, true};
  if (count == 0) return piece;
  TRAIND_ASSIGN_OR_RETURN(piece.data, ReadAt(file.descriptor(), offset, count, log_file));
  const bool is_rest = offset + static_cast<int64_t>(piece.data.size()) >= size;
  piece.data.resize(CutAtLineEnd(piece.data, is_rest, complete));
  piece.next_offset = offset + static_cast<int64_t>(piece.data.size());
  piece.at_end = is_rest;
  return piece;
}

}  // namespace traind::artifacts
