// The stream of DownloadCheckpoint.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/sync_stream.h>

#include <cstdint>

#include "absl/status/status.h"
#include "server/api/rpc_runner.h"
#include "traind/v1/checkpoint.pb.h"

namespace traind::api {

// Sends the checkpoint's files one after the other, from byte `offset` of all of them on, and
// checks each against its hash on the way; a file of which only a part is sent is read as a whole.
// Errors: INVALID_ARGUMENT (INVALID_FIELD) for an offset outside the checkpoint, DATA_LOSS
// (CHECKPOINT_CORRUPT): throw the file away; UNAVAILABLE (DRAINING); CANCELLED if the client left.
absl::Status StreamCheckpoint(const RpcRunner& runner, const v1::Checkpoint& checkpoint,
                              int64_t offset, grpc::ServerWriter<v1::CheckpointChunk>& writer);

}  // namespace traind::api
