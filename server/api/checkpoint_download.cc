#include "server/api/checkpoint_download.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "server/artifacts/checkpoint_file_reader.h"

namespace traind::api {
namespace {

constexpr size_t kChunkBytes = 64 * 1024;

// Sends one file without its first `skip` bytes.
class FileStream {
 public:
  FileStream(const RpcRunner& runner, const v1::CheckpointFile& file, int64_t skip,
             grpc::ServerWriter<v1::CheckpointChunk>& writer)
      : runner_(runner), file_(file), offset_(skip), to_skip_(skip), writer_(writer) {}

  absl::Status Run(artifacts::CheckpointFileReader& reader) {
    for (;;) {
      if (runner_.stopping()) return Draining();
      TRAIND_ASSIGN_OR_RETURN(std::string data, reader.Read(kChunkBytes));
      const bool at_end = data.empty();
      const size_t skipped = std::min(data.size(), static_cast<size_t>(to_skip_));
      to_skip_ -= static_cast<int64_t>(skipped);
      data.erase(0, skipped);
      // An empty file has a chunk too, so that the client creates it.
      const bool send = !data.empty() || (at_end && !announced_);
      if (send && !Send(std::move(data))) return absl::CancelledError("the client left");
      if (at_end) return absl::OkStatus();
    }
  }

 private:
  bool Send(std::string data) {
    v1::CheckpointChunk chunk;
    if (!announced_) {
      *chunk.mutable_file() = file_;
      chunk.set_offset(offset_);
    }
    announced_ = true;
    chunk.set_data(std::move(data));
    return writer_.Write(chunk);
  }

  const RpcRunner& runner_;
  const v1::CheckpointFile& file_;
  const int64_t offset_;
  int64_t to_skip_;
  grpc::ServerWriter<v1::CheckpointChunk>& writer_;
  bool announced_ = false;
};

}  // namespace

absl::Status StreamCheckpoint(const RpcRunner& runner, const v1::Checkpoint& checkpoint,
                              int64_t offset, grpc::ServerWriter<v1::CheckpointChunk>& writer) {
  if (offset < 0 || offset > checkpoint.size_bytes()) {
    return FieldErrors(
        {{"offset", absl::StrCat("must be in [0, ", checkpoint.size_bytes(), "]; got ", offset)}});
  }
  for (const v1::CheckpointFile& file : checkpoint.files()) {
    const int64_t skip = std::min(offset, file.size_bytes());
    offset -= skip;
    if (skip > 0 && skip == file.size_bytes()) continue;
    TRAIND_ASSIGN_OR_RETURN(const auto reader,
                            artifacts::CheckpointFileReader::Open(checkpoint, file));
    TRAIND_RETURN_IF_ERROR(FileStream(runner, file, skip, writer).Run(*reader));
  }
  return absl::OkStatus();
}

}  // namespace traind::api
