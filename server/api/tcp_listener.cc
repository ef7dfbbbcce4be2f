#include "server/api/tcp_listener.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::api {
namespace {

// How often the certificate's files are looked at.
constexpr unsigned kRefreshSeconds = 60;

absl::Status Invalid(absl::string_view message, const std::string& value) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kConfigInvalid, message,
               {{"value", value}});
}

std::string OpenSslError() {
  std::array<char, 256> text = {};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

absl::Status CheckCertificate(const config::v1::TcpListener& listener) {
  const std::string& chain = listener.tls_certificate_file();
  const std::string& key = listener.tls_key_file();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  &SSL_CTX_free);
  if (SSL_CTX_use_certificate_chain_file(context.get(), chain.c_str()) != 1) {
    return Invalid(
        absl::StrCat("listen_tcp.tls_certificate_file: cannot use ", chain, ": ", OpenSslError()),
        chain);
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Invalid(absl::StrCat("listen_tcp.tls_key_file: cannot use ", key,
                                ", or it does not belong to ", chain, ": ", OpenSslError()),
                   key);
  }
  return absl::OkStatus();
}

absl::Status TryToBind(const addrinfo& target, const std::string& address) {
  const int probe = socket(target.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return Invalid(absl::StrCat(address, ": ", std::strerror(errno)), address);
  const int on = 1;
  setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool bound = bind(probe, target.ai_addr, target.ai_addrlen) == 0 && listen(probe, 1) == 0;
  const int error = errno;
  close(probe);
  if (bound) return absl::OkStatus();
  if (error == EADDRINUSE) {
    return Error(absl::StatusCode::kFailedPrecondition, Reason::kAddressInUse,
                 absl::StrCat(address, " is in use; stop the other process or choose another port"),
                 {{"address", address}});
  }
  return Invalid(absl::StrCat("cannot listen on ", address, ": ", std::strerror(error)), address);
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const config::v1::TcpListener& listener) {
  if (listener.insecure_loopback()) return grpc::InsecureServerCredentials();
  TRAIND_RETURN_IF_ERROR(CheckCertificate(listener));
  const auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      listener.tls_key_file(), listener.tls_certificate_file(), kRefreshSeconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

absl::Status CheckAddressIsFree(const std::string& address) {
  TRAIND_ASSIGN_OR_RETURN(const config::HostPort parts, config::ParseHostPort(address));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(parts.host.c_str(), absl::StrCat(parts.port).c_str(), &hints, &found);
  if (error != 0) {
    return Invalid(absl::StrCat("cannot find the host of ", address, ": ", gai_strerror(error)),
                   address);
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
  return TryToBind(*found, address);
}

}  // namespace traind::api
