#include "client/cmd/checkpoint/checkpoint_download.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/os/sha256.h"
#include "common/status/errors.h"

namespace traind::client {
namespace {

namespace fs = std::filesystem;

absl::Status Corrupt(const std::string& file, absl::string_view what) {
  return Error(absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
               absl::StrCat(file, ": ", what), {{"file", file}});
}

// The daemon is trusted with the content, not with where on this machine it goes.
absl::Status CheckPaths(const v1::Checkpoint& checkpoint) {
  std::set<std::string> seen;
  for (const v1::CheckpointFile& file : checkpoint.files()) {
    const fs::path path(file.path());
    bool inside = !file.path().empty() && path.is_relative() && path.has_filename();
    for (const fs::path& part : path) inside = inside && part != ".." && part != ".";
    if (!inside || file.path().find('\0') != std::string::npos) {
      return Corrupt(file.path(), "is not a path below the checkpoint's folder");
    }
    if (file.size_bytes() < 0 || !seen.insert(file.path()).second) {
      return Corrupt(file.path(), "is listed twice or with a wrong size");
    }
  }
  return absl::OkStatus();
}

// Removes files that are not of `checkpoint`, as of an older download to the same place.
absl::Status RemoveOthers(const v1::Checkpoint& checkpoint, const std::string& partial) {
  std::set<std::string> known;
  for (const v1::CheckpointFile& file : checkpoint.files()) {
    known.insert((fs::path(partial) / file.path()).string());
  }
  std::vector<std::string> others;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(partial, error)) {
    const bool folder = entry.is_directory() && !entry.is_symlink();
    if (!folder && (entry.is_symlink() || known.count(entry.path().string()) == 0)) {
      others.push_back(entry.path().string());
    }
  }
  if (error) return ErrnoError(error.value(), Reason::kOutputFailed, "read", partial);
  for (const std::string& other : others) TRAIND_RETURN_IF_ERROR(RemoveAll(other));
  return absl::OkStatus();
}

absl::StatusOr<std::string> Sha256OfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return ErrnoError(errno, Reason::kUnspecified, "read", path);
  Sha256 digest;
  std::vector<char> buffer(1 << 20);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0) {
    digest.Update({buffer.data(), static_cast<size_t>(in.gcount())});
  }
  if (in.bad()) return ErrnoError(errno, Reason::kUnspecified, "read", path);
  return digest.Hex();
}

// Writes `bytes` at `offset`, after which the file ends.
absl::Status WriteAt(const std::string& path, int64_t offset, const std::string& bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return ErrnoError(errno, Reason::kOutputFailed, "create", path);
  int error = ftruncate(descriptor, offset) == 0 ? 0 : errno;
  for (size_t done = 0; error == 0 && done < bytes.size();) {
    const ssize_t written = pwrite(descriptor, bytes.data() + done, bytes.size() - done,
                                   offset + static_cast<int64_t>(done));
    if (written > 0) done += static_cast<size_t>(written);
    if (written < 0 && errno != EINTR) error = errno;
  }
  close(descriptor);
  return error == 0 ? absl::OkStatus() : ErrnoError(error, Reason::kOutputFailed, "write", path);
}

absl::Status SyncFile(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return ErrnoError(errno, Reason::kOutputFailed, "open", path);
  const int error = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  return error == 0 ? absl::OkStatus() : ErrnoError(error, Reason::kOutputFailed, "sync", path);
}

}  // namespace

CheckpointDownload::CheckpointDownload(v1::Checkpoint checkpoint, std::string folder)
    : checkpoint_(std::move(checkpoint)), folder_(std::move(folder)) {
  while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
  partial_ = absl::StrCat(folder_, ".partial");
}

absl::StatusOr<CheckpointDownload> CheckpointDownload::Open(const v1::Checkpoint& checkpoint,
                                                            const std::string& folder) {
  TRAIND_RETURN_IF_ERROR(CheckPaths(checkpoint));
  CheckpointDownload download(checkpoint, folder);
  TRAIND_RETURN_IF_ERROR(CreateDirectories(download.partial_));
  TRAIND_RETURN_IF_ERROR(RemoveOthers(checkpoint, download.partial_));
  for (; download.file_ < checkpoint.files_size(); ++download.file_) {
    const std::string path = download.PartialPath(download.file_);
    TRAIND_RETURN_IF_ERROR(CreateDirectories(fs::path(path).parent_path().string()));
    std::error_code missing;
    const auto size = fs::file_size(path, missing);
    download.size_ = missing ? 0 : static_cast<int64_t>(size);
    const int64_t whole = checkpoint.files(download.file_).size_bytes();
    if (download.size_ > whole) download.size_ = 0;  // Of something else: fetch it anew.
    if (missing || download.size_ < whole) break;
  }
  return download;
}

std::string CheckpointDownload::PartialPath(int file) const {
  return absl::StrCat(partial_, "/", checkpoint_.files(file).path());
}

int64_t CheckpointDownload::bytes_done() const {
  int64_t bytes = complete() ? 0 : size_;
  for (int i = 0; i < file_; ++i) bytes += checkpoint_.files(i).size_bytes();
  return bytes;
}

bool CheckpointDownload::complete() const { return file_ == checkpoint_.files_size(); }

absl::Status CheckpointDownload::BeginFile(const v1::CheckpointChunk& chunk) {
  for (int i = 0; i < checkpoint_.files_size(); ++i) {
    const v1::CheckpointFile& file = checkpoint_.files(i);
    if (file.path() != chunk.file().path()) continue;
    if (i > file_ || chunk.offset() < 0 || (i == file_ && chunk.offset() > size_)) {
      return Corrupt(file.path(), "came before what stands in front of it");
    }
    if (chunk.file().sha256() != file.sha256() || chunk.file().size_bytes() != file.size_bytes()) {
      return Corrupt(file.path(), "changed on the daemon's side during the download");
    }
    file_ = i;
    size_ = chunk.offset();
    return CreateDirectories(fs::path(PartialPath(i)).parent_path().string());
  }
  return Corrupt(chunk.file().path(), "is not in the checkpoint's list of files");
}

absl::Status CheckpointDownload::Append(const v1::CheckpointChunk& chunk) {
  if (chunk.has_file()) TRAIND_RETURN_IF_ERROR(BeginFile(chunk));
  if (complete()) return Corrupt(checkpoint_.name(), "has more bytes than its list of files says");
  const v1::CheckpointFile& file = checkpoint_.files(file_);
  const auto bytes = static_cast<int64_t>(chunk.data().size());
  if (size_ + bytes > file.size_bytes()) {
    return Corrupt(file.path(), absl::StrCat("is longer than ", file.size_bytes(), " bytes"));
  }
  TRAIND_RETURN_IF_ERROR(WriteAt(PartialPath(file_), size_, chunk.data()));
  size_ += bytes;
  if (size_ == file.size_bytes()) {
    ++file_;
    size_ = 0;
  }
  return absl::OkStatus();
}

absl::Status CheckpointDownload::VerifyFile(int file) const {
  const std::string path = PartialPath(file);
  TRAIND_ASSIGN_OR_RETURN(const std::string digest, Sha256OfFile(path));
  const v1::CheckpointFile& expected = checkpoint_.files(file);
  if (digest == expected.sha256()) return SyncFile(path);
  TRAIND_RETURN_IF_ERROR(RemoveAll(path));
  return Corrupt(expected.path(), absl::StrCat("its SHA-256 is ", digest, " instead of ",
                                               expected.sha256(), "; it was removed, try again"));
}

absl::Status CheckpointDownload::Finish() {
  absl::Status status;
  for (int i = 0; i < checkpoint_.files_size(); ++i) status.Update(VerifyFile(i));
  TRAIND_RETURN_IF_ERROR(status);
  std::set<std::string> folders = {partial_};
  for (int i = 0; i < checkpoint_.files_size(); ++i) {
    folders.insert(fs::path(PartialPath(i)).parent_path().string());
  }
  for (const std::string& folder : folders) TRAIND_RETURN_IF_ERROR(SyncDirectory(folder));
  return RenameDurably(partial_, folder_);
}

}  // namespace traind::client
