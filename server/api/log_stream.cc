#include "server/api/log_stream.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/names/resource_name.h"
#include "common/status/errors.h"
#include "server/api/job_watch.h"
#include "server/artifacts/job_paths.h"
#include "server/artifacts/log_reader.h"
#include "server/jobs/job_state.h"

namespace traind::api {
namespace {

constexpr size_t kChunkBytes = 64 * 1024;

// One reader. Lives on its call's thread.
class LogStream {
 public:
  LogStream(const ServiceContext& context, const grpc::ServerContext& rpc,
            const v1::ReadLogsRequest& request, grpc::ServerWriter<v1::LogChunk>& writer)
      : context_(context),
        rpc_(rpc),
        request_(request),
        writer_(writer),
        attempt_(request.attempt()),
        offset_(request.offset()),
        last_sent_(context.parts.clock->Now()) {}

  absl::Status Run() {
    for (;;) {
      TRAIND_RETURN_IF_ERROR(LoadJob());
      TRAIND_RETURN_IF_ERROR(SendWhatIsThere());
      if (complete_ || !request_.follow()) return absl::OkStatus();
      TRAIND_RETURN_IF_ERROR(WaitForMore());
    }
  }

 private:
  // Looks which attempt is meant and whether it has ended. This comes before the log is read, so
  // that the last lines of an attempt that ends in between are not missed.
  absl::Status LoadJob() {
    TRAIND_ASSIGN_OR_RETURN(record_, context_.parts.store->GetJob(request_.name()));
    const int newest = record_.attempts.empty() ? 0 : record_.attempts.back().number();
    if (attempt_ == 0) attempt_ = newest;
    if (attempt_ < 0 || attempt_ > newest) {
      return FieldErrors({{"attempt", absl::StrCat(record_.job.name(), " has ", newest,
                                                   " attempts; got ", attempt_)}});
    }
    complete_ = jobs::IsTerminal(record_.job.state());
    for (const auto& attempt : record_.attempts) {
      if (attempt.number() == attempt_) complete_ = complete_ || attempt.ended();
    }
    complete_ = complete_ || (attempt_ != 0 && attempt_ < newest);
    return absl::OkStatus();
  }

  absl::Status SendWhatIsThere() {
    if (attempt_ == 0) return absl::OkStatus();
    TRAIND_ASSIGN_OR_RETURN(
        const artifacts::JobPaths paths,
        artifacts::JobPaths::ForJob(context_.options->config.state_dir(), record_.job.uid()));
    for (;;) {
      TRAIND_ASSIGN_OR_RETURN(
          artifacts::LogPiece piece,
          artifacts::ReadLog(paths.log_file(attempt_), offset_, kChunkBytes, complete_));
      offset_ = piece.next_offset;
      if (!piece.data.empty()) TRAIND_RETURN_IF_ERROR(Send(std::move(piece.data)));
      if (piece.at_end) return absl::OkStatus();
      TRAIND_RETURN_IF_ERROR(CheckGoingOn());
    }
  }

  absl::Status CheckGoingOn() const {
    if (rpc_.IsCancelled()) return absl::CancelledError("the client left");
    return context_.runner->stopping() ? Draining() : absl::OkStatus();
  }

  // A log has no wake-up of its own: the job's next event or the end of a slice are the moments to
  // look again.
  absl::Status WaitForMore() {
    TRAIND_RETURN_IF_ERROR(CheckGoingOn());
    const auto wake =
        context_.parts.events->Wait(record_.job.uid(), record_.job.last_sequence(), kStreamSlice);
    if (wake == events::EventHub::Wake::kStopping) return Draining();
    const absl::Duration silence = context_.parts.clock->Now() - last_sent_;
    return silence < context_.options->heartbeat_interval ? absl::OkStatus() : Send("");
  }

  absl::Status Send(std::string data) {
    v1::LogChunk chunk;
    chunk.set_data(std::move(data));
    chunk.set_next_offset(offset_);
    chunk.set_attempt(attempt_);
    if (!writer_.Write(chunk)) return absl::CancelledError("the client left");
    last_sent_ = context_.parts.clock->Now();
    return absl::OkStatus();
  }

  const ServiceContext& context_;
  const grpc::ServerContext& rpc_;
  const v1::ReadLogsRequest& request_;
  grpc::ServerWriter<v1::LogChunk>& writer_;
  store::JobRecord record_;
  int attempt_;  // 0: there is none yet.
  int64_t offset_;
  bool complete_ = false;  // The attempt, or the job, has ended.
  absl::Time last_sent_;
};

}  // namespace

absl::Status StreamLogs(const ServiceContext& context, const grpc::ServerContext& rpc,
                        const v1::ReadLogsRequest& request,
                        grpc::ServerWriter<v1::LogChunk>& writer) {
  TRAIND_RETURN_IF_ERROR(ParseJobName(request.name()).status());
  if (request.offset() < 0) {
    return FieldErrors({{"offset", absl::StrCat("must be at least 0; got ", request.offset())}});
  }
  return LogStream(context, rpc, request, writer).Run();
}

}  // namespace traind::api
