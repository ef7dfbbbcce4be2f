// One worker's connection to the daemon.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/supervisor/worker_reports.h"
#include "traind/worker/v1/worker_service.grpc.pb.h"

namespace traind::supervisor {

using WorkerStream =
    grpc::ServerReaderWriter<worker::v1::DaemonResponse, worker::v1::WorkerRequest>;

// Passes a worker's reports on, several at a time, and answers with what is committed and with the
// stop command. Signs of life do not wait for a commit. Owned by the gRPC handler's stack; threads:
// `Run` blocks in the handler and starts one more, everything else is thread-safe.
class WorkerConnection {
 public:
  // All references are borrowed and outlive the connection.
  WorkerConnection(grpc::ServerContext& context, WorkerStream& stream, worker::v1::Hello hello,
                   WorkerReports& reports)
      : context_(context), stream_(stream), hello_(std::move(hello)), reports_(reports) {}

  const worker::v1::Hello& hello() const { return hello_; }

  // Sends `welcome`, then serves until the line breaks or a commit fails, and everything that was
  // received is passed on. `on_message` is called at each message.
  void Run(const worker::v1::Welcome& welcome, const std::function<void()>& on_message);

  // Sends a stop command as soon as possible.
  void SendStop(const worker::v1::Stop& stop);

  // Breaks the line.
  void Cancel() { context_.TryCancel(); }

 private:
  void ReadAll(const std::function<void()>& on_message);
  void AnswerAll();
  // Commits a batch and acknowledges it. Whether the line still stands.
  bool PassOn(const std::vector<worker::v1::Report>& batch);

  grpc::ServerContext& context_;
  WorkerStream& stream_;
  const worker::v1::Hello hello_;
  WorkerReports& reports_;

  absl::Mutex mutex_;
  std::deque<worker::v1::Report> received_ ABSL_GUARDED_BY(mutex_);
  std::optional<worker::v1::Stop> stop_ ABSL_GUARDED_BY(mutex_);
  bool read_all_ ABSL_GUARDED_BY(mutex_) = false;
  bool answering_ ABSL_GUARDED_BY(mutex_) = true;
};

}  // namespace traind::supervisor
