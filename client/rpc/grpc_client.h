// The daemon over gRPC.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/rpc/client.h"
#include "client/rpc/endpoint.h"
#include "client/rpc/interrupt.h"

namespace traind::client {

struct GrpcClientOptions {
  Endpoint endpoint;
  std::string ca_certificates;                 // PEM; empty: the system's.
  std::string token;                           // Sent as `authorization: Bearer …`; empty: none.
  absl::Duration timeout = absl::Seconds(30);  // Of one unary call, with its repeats.
  // A watch without any message for this long is dead; the daemon sends heartbeats.
  absl::Duration watch_silence_limit = absl::Seconds(30);
  const Interrupt* interrupt = nullptr;  // Ends a call that waits. Must outlive the client.
};

// Connects at the first call, not before. INVALID_ARGUMENT for a token that cannot be
// sent.
absl::StatusOr<std::unique_ptr<Client>> MakeGrpcClient(GrpcClientOptions options);

}  // namespace traind::client
