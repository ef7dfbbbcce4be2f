#include "common/os/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

std::string Parent(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

absl::Status WriteAll(int descriptor, absl::string_view bytes, Reason reason,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, reason, "write", path);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, Reason reason) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoError(errno, reason, "read", path);
  std::string contents;
  char buffer[1 << 16];
  ssize_t count = 0;
  while ((count = ::read(descriptor, buffer, sizeof buffer)) != 0) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    contents.append(buffer, static_cast<size_t>(count));
  }
  const int error_number = errno;
  ::close(descriptor);
  if (count < 0) return ErrnoError(error_number, reason, "read", path);
  return contents;
}

absl::Status WriteFileAtomically(const std::string& path, absl::string_view contents,
                                 Reason reason) {
  const std::string temporary = absl::StrCat(path, ".tmp.", ::getpid());
  TRAIND_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(temporary, reason));
  absl::Status status = writer.Append(contents);
  if (status.ok()) status = writer.Close();
  if (status.ok()) return RenameDurably(temporary, path);
  ::unlink(temporary.c_str());
  return status;
}

absl::StatusOr<FileWriter> FileWriter::Create(const std::string& path, Reason reason) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) return ErrnoError(errno, reason, "create", path);
  return FileWriter(descriptor, path, reason);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      reason_(other.reason_) {}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

absl::Status FileWriter::Append(absl::string_view bytes) {
  return WriteAll(descriptor_, bytes, reason_, path_);
}

absl::Status FileWriter::Close() {
  const int descriptor = std::exchange(descriptor_, -1);
  const bool synced = ::fsync(descriptor) == 0;
  const int error_number = errno;
  ::close(descriptor);
  if (!synced) return ErrnoError(error_number, reason_, "sync", path_);
  return absl::OkStatus();
}

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path, Reason reason) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoError(errno, reason, "read", path);
  struct stat info {};
  const char* data = nullptr;
  int error_number = 0;
  if (::fstat(descriptor, &info) != 0) error_number = errno;
  if (error_number == 0 && S_ISDIR(info.st_mode)) error_number = EISDIR;
  if (error_number == 0 && info.st_size > 0) {
    void* mapped =
        ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED)
      error_number = errno;
    else
      data = static_cast<const char*>(mapped);
  }
  ::close(descriptor);
  if (error_number != 0) return ErrnoError(error_number, reason, "read", path);
  return MappedFile(data, static_cast<size_t>(info.st_size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

absl::Status SyncDirectory(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoError(errno, Reason::kOutputFailed, "open", path);
  const bool synced = ::fsync(descriptor) == 0;
  const int error_number = errno;
  ::close(descriptor);
  if (!synced) return ErrnoError(error_number, Reason::kOutputFailed, "sync", path);
  return absl::OkStatus();
}

absl::Status RenameDurably(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoError(errno, Reason::kOutputFailed, absl::StrCat("rename ", from, " to"), to);
  }
  return SyncDirectory(Parent(to));
}

absl::Status ReplaceDirectoryDurably(const std::string& from, const std::string& to) {
  if (!FileExists(to)) return RenameDurably(from, to);
  std::string old = from;  // After the exchange the old folder has the new one's name.
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != EINVAL && errno != ENOSYS) {
      return ErrnoError(errno, Reason::kOutputFailed, absl::StrCat("exchange ", from, " with"), to);
    }
    old = absl::StrCat(from, ".replaced");
    TRAIND_RETURN_IF_ERROR(RenameDurably(to, old));
    TRAIND_RETURN_IF_ERROR(RenameDurably(from, to));
  }
  TRAIND_RETURN_IF_ERROR(SyncDirectory(Parent(to)));
  return RemoveAll(old);
}

absl::Status CreateDirectories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return ErrnoError(error.value(), Reason::kOutputFailed, "create folder", path);
  return absl::OkStatus();
}

absl::Status RemoveAll(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) return ErrnoError(error.value(), Reason::kOutputFailed, "remove", path);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error) return ErrnoError(error.value(), Reason::kUnspecified, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

bool FileExists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace traind
