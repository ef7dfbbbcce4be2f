// Convert errors to and from google.rpc.Status, the form that is stored and sent.
#pragma once

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"

namespace traind {

// Message cut at 1,024 bytes (at a character's end); payloads become details.
google::rpc::Status ToRpcStatus(const absl::Status& status);

absl::Status FromRpcStatus(const google::rpc::Status& status);

}  // namespace traind
