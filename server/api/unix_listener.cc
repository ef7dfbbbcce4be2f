#include "server/api/unix_listener.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::api {
namespace {

// How long to pause when the process has no descriptor left.
constexpr int kPauseMs = 100;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

const sockaddr* Generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

absl::Status CannotListen(const std::string& path, absl::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid,
               absl::StrCat("cannot listen on ", path, ": ", why), {{"path", path}});
}

absl::Status InUse(const std::string& path, absl::string_view why) {
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kAddressInUse,
               absl::StrCat("unix:", path, " is in use: ", why), {{"address", path}});
}

// Makes the path free: a socket that nobody listens on is removed.
absl::Status ClearPath(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return InUse(path, "the file is no socket; remove it or choose another path");
  }
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return CannotListen(path, std::strerror(errno));
  const sockaddr_un address = AddressOf(path);
  const int connected = connect(probe, Generic(address), sizeof(address));
  const int error = errno;
  close(probe);
  // EAGAIN: the queue of a living listener is full.
  if (connected == 0 || error != ECONNREFUSED) {
    return InUse(path, "another process listens; stop it or choose another path");
  }
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return CannotListen(path, absl::StrCat("cannot remove the old socket: ", std::strerror(errno)));
}

absl::Status Bind(int listener, const std::string& path, mode_t mode) {
  const sockaddr_un address = AddressOf(path);
  // The file is created with the socket's own permissions, so that it is never wider than asked
  // for.
  if (fchmod(listener, 0600) != 0) return CannotListen(path, std::strerror(errno));
  if (bind(listener, Generic(address), sizeof(address)) != 0) {
    return errno == EADDRINUSE ? InUse(path, "another process listens")
                               : CannotListen(path, std::strerror(errno));
  }
  if (chmod(path.c_str(), mode) != 0 || listen(listener, SOMAXCONN) != 0) {
    return CannotListen(path, std::strerror(errno));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Listen(const std::string& path,
                                                                   mode_t mode) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return CannotListen(path, "path too long");
  if (auto status = CreateDirectories(std::filesystem::path(path).parent_path()); !status.ok()) {
    return CannotListen(path, status.message());
  }
  TRAIND_RETURN_IF_ERROR(ClearPath(path));
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return CannotListen(path, std::strerror(errno));
  const int stop_event = eventfd(0, EFD_CLOEXEC);
  // Owns both descriptors from here on; its file counts as ours only after Bind.
  std::unique_ptr<UnixListener> result(new UnixListener(path, listener, stop_event));
  if (stop_event < 0) return CannotListen(path, std::strerror(errno));
  TRAIND_RETURN_IF_ERROR(Bind(listener, path, mode));
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return CannotListen(path, std::strerror(errno));
  result->device_ = info.st_dev;
  result->inode_ = info.st_ino;
  return result;
}

UnixListener::UnixListener(std::string path, int listener, int stop_event)
    : path_(std::move(path)), listener_(listener), stop_event_(stop_event) {}

UnixListener::~UnixListener() {
  Stop();
  close(listener_);
  if (stop_event_ >= 0) close(stop_event_);
}

void UnixListener::StartAccepting(Handler handler) {
  thread_ = std::thread([this, handler = std::move(handler)] { AcceptUntilStopped(handler); });
}

void UnixListener::AcceptUntilStopped(const Handler& handler) {
  while (WaitForConnection(-1)) AcceptOne(handler);
}

bool UnixListener::WaitForConnection(int timeout_ms) {
  // Without a time limit: a connection or the stop; with one: only the stop.
  pollfd events[] = {{stop_event_, POLLIN, 0}, {listener_, POLLIN, 0}};
  poll(events, timeout_ms < 0 ? 2 : 1, timeout_ms);
  return (events[0].revents & POLLIN) == 0;
}

void UnixListener::AcceptOne(const Handler& handler) {
  const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (descriptor < 0) {
    const bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    if (!exhausted) return;
    Log(LogLevel::kWarn, "connection.refused", {{"error", std::strerror(errno)}},
        "cannot accept; raise the limit of open files");
    WaitForConnection(kPauseMs);
    return;
  }
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    close(descriptor);
    return;
  }
  handler(descriptor, credentials.uid);
}

void UnixListener::Stop() {
  if (stopped_) return;
  stopped_ = true;
  if (thread_.joinable()) {
    eventfd_write(stop_event_, 1);
    thread_.join();
  }
  RemoveFile();
}

void UnixListener::RemoveFile() {
  struct stat info;
  if (inode_ == 0 || stat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) unlink(path_.c_str());
}

}  // namespace traind::api
