#include "server/artifacts/checkpoint_file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::artifacts {
namespace {

absl::Status Corrupt(absl::string_view path, absl::string_view what) {
  return Error(absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
               absl::StrCat(path, " ", what, "; use another checkpoint"),
               {{"path", path}, {"problem", what}});
}

bool IsPlainName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, '/') &&
         !absl::StrContains(name, '\0');
}

absl::Status CheckSize(int descriptor, const std::string& path, int64_t expected) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0) {
    return ErrnoError(errno, Reason::kCheckpointNotFound, "read", path);
  }
  if (!S_ISREG(info.st_mode)) return Corrupt(path, "is not a plain file");
  if (info.st_size == expected) return absl::OkStatus();
  return Corrupt(path, absl::StrCat("has ", info.st_size, " bytes in place of ", expected));
}

}  // namespace

absl::StatusOr<int> OpenInFolder(const std::string& folder, const std::string& name) {
  const std::string path = absl::StrCat(folder, "/", name);
  if (!IsPlainName(name)) return Corrupt(path, "is not a file's name");
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (directory < 0) return ErrnoError(errno, Reason::kCheckpointNotFound, "open", folder);
  // A pipe in place of a file must not block the caller.
  const int descriptor =
      ::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  const int error_number = errno;
  ::close(directory);
  if (descriptor >= 0) return descriptor;
  if (error_number == ELOOP) return Corrupt(path, "is a symbolic link");
  return ErrnoError(error_number, Reason::kCheckpointNotFound, "open", path);
}

absl::StatusOr<std::unique_ptr<CheckpointFileReader>> CheckpointFileReader::Open(
    const v1::Checkpoint& checkpoint, const v1::CheckpointFile& file) {
  TRAIND_ASSIGN_OR_RETURN(const int descriptor, OpenInFolder(checkpoint.path(), file.path()));
  std::unique_ptr<CheckpointFileReader> reader(new CheckpointFileReader(
      descriptor, absl::StrCat(checkpoint.path(), "/", file.path()), file));
  TRAIND_RETURN_IF_ERROR(CheckSize(descriptor, reader->path_, file.size_bytes()));
  return reader;
}

CheckpointFileReader::~CheckpointFileReader() { ::close(descriptor_); }

absl::StatusOr<std::string> CheckpointFileReader::Read(size_t max_bytes) {
  std::string bytes(max_bytes, '\0');
  ssize_t count = 0;
  do {
    count = ::read(descriptor_, bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return ErrnoError(errno, Reason::kCheckpointCorrupt, "read", path_);
  bytes.resize(static_cast<size_t>(count));
  if (count == 0) {
    TRAIND_RETURN_IF_ERROR(CheckHash());
  } else {
    hash_.Update(bytes);
  }
  return bytes;
}

absl::Status CheckpointFileReader::CheckHash() {
  if (std::exchange(checked_, true)) return absl::OkStatus();
  if (hash_.Hex() == file_.sha256()) return absl::OkStatus();
  return Corrupt(path_, "does not have the SHA-256 of its manifest");
}

}  // namespace traind::artifacts
