// What gRPC needs to listen on TCP, checked so that a wrong setting is named.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/config.h"

namespace traind::api {

// TLS with the listener's certificate, which is read again when its files change, or none for
// `insecure_loopback`. Errors: INVALID_ARGUMENT (CONFIG_INVALID) if a file is missing or the key
// does not belong to the certificate.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const config::v1::TcpListener& listener);

// Whether the address can be listened on right now. Errors: FAILED_PRECONDITION (ADDRESS_IN_USE),
// INVALID_ARGUMENT (CONFIG_INVALID), naming it.
absl::Status CheckAddressIsFree(const std::string& address);

}  // namespace traind::api
