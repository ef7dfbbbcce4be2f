#include "client/cmd/job/follow.h"

#include "absl/strings/str_cat.h"
#include "client/output/json.h"
#include "client/output/watch_view.h"
#include "client/rpc/job_follower.h"

namespace traind::client {
namespace {

// Handlers that show the events of one job on `io`.
class Show {
 public:
  Show(const FollowJobOptions& options, IoStreams& io, Client& client)
      : options_(options), io_(io), client_(client), view_(io, options.name) {
    if (options.common.timeout) deadline_ = client.Now() + *options.common.timeout;
  }

  absl::StatusOr<v1::StreamEnd::Reason> Follow() {
    FollowOptions follow;
    follow.name = options_.name;
    follow.after_sequence = options_.after_sequence;
    follow.on_event = [this](const v1::Event& event) { OnEvent(event); };
    follow.on_lost = [this](const absl::Status& status) {
      view_.Message(absl::StrCat("connection lost (", status.message(), "); trying again …"));
    };
    follow.on_resumed = [this] { view_.Message("connected again; nothing was missed"); };
    follow.wants_more = [this] { return print_status_.ok() && client_.Now() < deadline_; };
    auto end = FollowJob(client_, follow);
    view_.Close();
    if (!print_status_.ok()) return print_status_;
    return end;
  }

  WatchView& view() { return view_; }

 private:
  void OnEvent(const v1::Event& event) {
    if (options_.common.output == OutputFormat::kJson) {
      print_status_.Update(PrintJson(io_, event, JsonStyle::kOneLine));
    } else {
      view_.OnEvent(event);
    }
  }

  const FollowJobOptions& options_;
  IoStreams& io_;
  Client& client_;
  WatchView view_;
  absl::Time deadline_ = absl::InfiniteFuture();
  absl::Status print_status_;
};

}  // namespace

absl::StatusOr<ExitCode> ShowUntilEnd(const FollowJobOptions& options, IoStreams& io,
                                      Client& client) {
  Show show(options, io, client);
  const auto end = show.Follow();
  if (absl::IsCancelled(end.status())) {
    *io.err << "Stopped watching; " << options.name << " goes on.\n"
            << "  watch it again   trainctl job watch " << options.name << "\n"
            << "  cancel it        trainctl job cancel " << options.name << "\n";
    return ExitCode::kCancelled;
  }
  if (!end.ok()) return end.status();
  if (*end == v1::StreamEnd::JOB_DELETED) {
    *io.err << options.name << " was deleted.\n";
    return ExitCode::kNotFound;
  }
  if (*end != v1::StreamEnd::JOB_ENDED) {
    *io.err << "The time is over; " << options.name << " goes on.\n";
    return ExitCode::kPending;
  }
  v1::GetJobRequest request;
  request.set_name(options.name);
  const auto job = client.GetJob(request);
  if (!job.ok()) return job.status();
  if (options.common.output != OutputFormat::kJson) show.view().PrintSummary(*job);
  return options.exit_status ? ExitCodeOf(job->state()) : ExitCode::kOk;
}

}  // namespace traind::client
