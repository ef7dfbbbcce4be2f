#include "server/metrics/metrics_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::metrics {
namespace {

constexpr size_t kLongestRequest = 16 << 10;
// A client that is slower than this does not keep others from their scrape.
constexpr timeval kClientLimit = {2, 0};

absl::Status ListenError(int error_number, const std::string& address) {
  const bool in_use = error_number == EADDRINUSE;
  return Error(in_use ? absl::StatusCode::kFailedPrecondition : absl::StatusCode::kInvalidArgument,
               in_use ? Reason::kAddressInUse : Reason::kConfigInvalid,
               absl::StrCat("cannot serve metrics on ", address, ": ",
                            in_use ? "the address is in use" : std::strerror(error_number),
                            "; change metrics_address"),
               {{"address", address}});
}

int OpenListener(const addrinfo& address) {
  const int listener = ::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (listener >= 0 && ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      ::bind(listener, address.ai_addr, address.ai_addrlen) == 0 && ::listen(listener, 16) == 0) {
    return listener;
  }
  const int error_number = errno;
  if (listener >= 0) ::close(listener);
  errno = error_number;
  return -1;
}

int BoundPort(int listener) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &size);
  if (bound.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port);
  }
  return ntohs(reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

// The request's head; what is there of it if the client is slow, gone, or writes too much.
std::string ReadRequest(int connection) {
  std::string request;
  char buffer[2048];
  while (!absl::StrContains(request, "\r\n\r\n") && request.size() < kLongestRequest) {
    const ssize_t count = ::recv(connection, buffer, sizeof buffer, 0);
    if (count <= 0) break;
    request.append(buffer, static_cast<size_t>(count));
  }
  return request;
}

void SendAll(int connection, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

std::string Response(absl::string_view status, absl::string_view content_type,
                     absl::string_view body) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Type: ", content_type,
                      "\r\nContent-Length: ", body.size(), "\r\nConnection: close\r\n\r\n", body);
}

}  // namespace

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& host,
                                                                    int port, Metrics& metrics) {
  const std::string name =
      absl::StrCat(absl::StrContains(host, ":") ? absl::StrCat("[", host, "]") : host, ":", port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (failure != 0) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid,
                 absl::StrCat("metrics_address ", name, ": ", ::gai_strerror(failure)),
                 {{"address", name}});
  }
  const int listener = OpenListener(*found);
  const int error_number = errno;
  ::freeaddrinfo(found);
  if (listener < 0) return ListenError(error_number, name);
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  return std::unique_ptr<MetricsServer>(
      new MetricsServer(listener, wake, BoundPort(listener), metrics));
}

MetricsServer::MetricsServer(int listener, int wake, int port, Metrics& metrics)
    : listener_(listener), wake_(wake), port_(port), metrics_(metrics), thread_([this] {
        Serve();
      }) {}

MetricsServer::~MetricsServer() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
  thread_.join();
  ::close(listener_);
  ::close(wake_);
}

void MetricsServer::Serve() {
  while (true) {
    pollfd entries[] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    ::poll(entries, 2, -1);
    if (entries[1].revents != 0) return;
    const int connection = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    ::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kClientLimit, sizeof kClientLimit);
    ::setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &kClientLimit, sizeof kClientLimit);
    Answer(connection);
    ::close(connection);
  }
}

void MetricsServer::Answer(int connection) {
  const std::string request = ReadRequest(connection);
  constexpr absl::string_view kText = "text/plain; charset=utf-8";
  if (!absl::StartsWith(request, "GET ")) {
    return SendAll(connection, Response("405 Method Not Allowed", kText, "only GET\n"));
  }
  const std::string target = request.substr(4, request.find_first_of(" ?\r", 4) - 4);
  if (target != "/metrics") {
    return SendAll(connection, Response("404 Not Found", kText, "see /metrics\n"));
  }
  SendAll(connection,
          Response("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics_.Render()));
}

}  // namespace traind::metrics
