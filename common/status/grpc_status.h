// Convert errors to and from gRPC's; the only place where the two meet.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace traind {

// Details travel in `grpc-status-details-bin`.
grpc::Status ToGrpcStatus(const absl::Status& status);

absl::Status FromGrpcStatus(const grpc::Status& status);

}  // namespace traind
