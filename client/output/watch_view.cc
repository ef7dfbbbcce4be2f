#include "client/output/watch_view.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/output/error_text.h"
#include "client/output/format.h"
#include "client/output/progress.h"
#include "client/output/table.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"

namespace traind::client {
namespace {

constexpr int kMaxBar = 30;
constexpr int kMaxCurve = 40;

// `LOADING_MODEL` as `loading model`.
std::string Words(const std::string& enum_name) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(enum_name), {{"_", " "}});
}

// Such as `, 3 dropped (2 no_supervised_tokens, 1 too_long)`.
std::string Dropped(const v1::TrainingPlan& plan) {
  std::vector<std::string> reasons;
  int64_t total = 0;
  for (const auto& [reason, rows] : plan.rows_dropped()) {
    if (rows == 0) continue;
    reasons.push_back(absl::StrCat(FormatCount(rows), " ", reason));
    total += rows;
  }
  if (total == 0) return "";
  std::sort(reasons.begin(), reasons.end());
  return absl::StrCat(", ", FormatCount(total), " dropped (", absl::StrJoin(reasons, ", "), ")");
}

// `4.012 → 2.412 (-39.9 %)`.
std::string FirstToLast(const std::vector<double>& values) {
  if (values.empty()) return "";
  if (values.size() == 1) return FormatNumber(values.front());
  const double first = values.front(), last = values.back();
  const std::string both = absl::StrCat(FormatNumber(first), " → ", FormatNumber(last));
  if (!std::isfinite(first) || !std::isfinite(last) || first == 0) return both;
  return absl::StrFormat("%s (%+.1f %%)", both, 100 * (last - first) / std::abs(first));
}

}  // namespace

WatchView::WatchView(const IoStreams& io, std::string job_name)
    : io_(io), job_name_(std::move(job_name)) {}

void WatchView::OnEvent(const v1::Event& event) {
  switch (event.kind_case()) {
    case v1::Event::kStateChange:
      return OnStateChange(event.state_change());
    case v1::Event::kPhaseChange:
      phase_ = Words(v1::Attempt::Phase_Name(event.phase_change().phase()));
      return Line(absl::StrCat("  ", phase_));
    case v1::Event::kPlan:
      return OnPlan(event.plan());
    case v1::Event::kStep:
      return OnStep(event.step());
    case v1::Event::kEval:
      return OnEval(event.eval());
    case v1::Event::kCheckpoint:
      return Line(
          absl::StrFormat("  checkpoint  %s  %s, training stood still for %s",
                          event.checkpoint().name(), FormatBytes(event.checkpoint().size_bytes()),
                          ShortDuration(absl::Seconds(event.checkpoint().stall_seconds()))));
    case v1::Event::kSample:
      return OnSample(event.sample());
    case v1::Event::kNotice:
      return OnNotice(event.notice());
    case v1::Event::kHeartbeat:
    case v1::Event::kEnd:
    case v1::Event::KIND_NOT_SET:  // A kind of a newer daemon.
      return;
  }
}

void WatchView::OnStateChange(const v1::StateChange& change) {
  const std::string state = v1::Job::State_Name(change.to());
  std::string why = OneLine(change.message());
  if (!change.reason().empty()) {
    why = absl::StrCat(why.empty() ? "" : absl::StrCat(why, " "), "[", change.reason(), "]");
  }
  phase_ = Words(state);
  if (change.to() == v1::Job::QUEUED) newest_.reset();  // The next attempt counts anew.
  Line(absl::StrCat(job_name_, "  ", ColourState(io_, state), why.empty() ? "" : "  ", why));
}

void WatchView::OnPlan(const v1::TrainingPlan& plan) {
  Line(absl::StrCat(
      "  rows        ", FormatCount(plan.rows_kept()), " kept", Dropped(plan),
      plan.rows_truncated() == 0 ? ""
                                 : absl::StrCat(", ", FormatCount(plan.rows_truncated()), " cut"),
      plan.eval_rows() == 0 ? ""
                            : absl::StrCat(", ", FormatCount(plan.eval_rows()), " evaluated")));
  Line(absl::StrCat("  tokens      ", FormatCount(plan.supervised_tokens()), " trained of ",
                    FormatCount(plan.tokens()), " in one pass"));
  Line(absl::StrCat("  updates     ", FormatCount(plan.total_steps()), ", ",
                    FormatCount(plan.steps_per_epoch()), " in one pass"));
  Line(absl::StrCat("  parameters  ", FormatCount(plan.trainable_parameters()), " trained of ",
                    FormatCount(plan.total_parameters())));
}

void WatchView::OnStep(const v1::StepMetrics& step) {
  const int64_t before = newest_ ? newest_->step() : 0;
  const double seconds = step.tokens_per_second() > 0
                             ? static_cast<double>(step.tokens()) / step.tokens_per_second()
                             : 0;
  if (seconds > 0 && step.step() > before) {
    const double now = seconds / static_cast<double>(step.step() - before);
    seconds_per_step_ = seconds_per_step_ == 0 ? now : 0.7 * seconds_per_step_ + 0.3 * now;
  }
  losses_.push_back(step.loss());
  tokens_ += step.tokens();
  training_seconds_ += seconds;
  peak_memory_bytes_ = std::max(peak_memory_bytes_, step.peak_memory_bytes());
  newest_ = step;
  if (io_.out_is_terminal) {
    DrawStatus();
  } else {
    Line(StepLine(step));
  }
}

void WatchView::OnEval(const v1::EvalMetrics& eval) {
  eval_losses_.push_back(eval.loss());
  Line(absl::StrCat("  eval        step ", eval.step(), "  loss ", FormatNumber(eval.loss()), "  ",
                    FormatCount(eval.rows()), " rows in ",
                    ShortDuration(absl::Seconds(eval.runtime_seconds()))));
}

void WatchView::OnSample(const v1::SampleAnswer& sample) {
  Line(absl::StrCat("  sample      step ", sample.step(), "  ", OneLine(sample.prompt())));
  const std::string answer = OneLine(absl::StripAsciiWhitespace(sample.answer()));
  constexpr int kIndent = 6;
  const int width = io_.out_is_terminal ? io_.width - kIndent : 1 << 20;
  absl::string_view mark = "    → ";
  for (const std::string& line : WrapWords(answer, width)) {
    Line(absl::StrCat(mark, line));
    mark = "      ";
  }
}

void WatchView::OnNotice(const v1::Notice& notice) {
  absl::string_view word = "note";
  if (notice.severity() == v1::Notice::WARNING) word = "warning";
  if (notice.severity() == v1::Notice::ERROR) word = "error";
  Line(absl::StrFormat("  %-10s  %s%s", word, OneLine(notice.message()),
                       notice.reason().empty() ? "" : absl::StrCat(" [", notice.reason(), "]")));
}

void WatchView::Line(const std::string& text) {
  ClearStatus();
  *io_.out << text << "\n";
  if (io_.out_is_terminal) {
    DrawStatus();
  } else {
    io_.out->flush();
  }
}

void WatchView::Message(const std::string& text) {
  ClearStatus();
  io_.out->flush();
  *io_.err << text << "\n" << std::flush;
  DrawStatus();
}

void WatchView::Close() {
  ClearStatus();
  newest_.reset();
  io_.out->flush();
}

void WatchView::DrawStatus() {
  if (!io_.out_is_terminal) return;
  ClearStatus();
  for (const std::string& line : StatusLines()) {
    // One column stays free: a full line would wrap on some terminals.
    *io_.out << FitWidth(line, io_.width - 1) << "\n";
    ++status_lines_;
  }
  io_.out->flush();
}

void WatchView::ClearStatus() {
  if (status_lines_ == 0) return;
  // To the first of the lines, and clear from there on: a key that was pressed may have left its
  // echo below.
  *io_.out << "\r\x1b[" << status_lines_ << "A\x1b[J";
  status_lines_ = 0;
}

std::vector<std::string> WatchView::StatusLines() const {
  if (!newest_) return {};
  return {ProgressLine(), LossLine()};
}

std::string WatchView::ProgressLine() const {
  const auto done = static_cast<double>(newest_->step());
  const auto total = static_cast<double>(newest_->total_steps());
  const double left = std::max(0.0, total - done) * seconds_per_step_;
  std::string line = absl::StrCat("  ", ProgressBar(done, total, std::min(kMaxBar, io_.width / 4)),
                                  "  ", newest_->step(), "/", newest_->total_steps());
  if (total > 0) absl::StrAppendFormat(&line, "  %.0f %%", 100 * done / total);
  if (seconds_per_step_ > 0 && total > 0) {
    absl::StrAppend(&line, "  ", ShortDuration(absl::Seconds(left)), " left");
  }
  absl::StrAppend(&line, "  ", FormatNumber(newest_->tokens_per_second()), " tokens/s  ",
                  FormatBytes(newest_->memory_bytes()));
  return line;
}

std::string WatchView::LossLine() const {
  return absl::StrCat("  loss ", FormatNumber(newest_->loss()), "  ",
                      Sparkline(losses_, std::min(kMaxCurve, io_.width / 3)), "  lr ",
                      FormatNumber(newest_->learning_rate()), "  grad ",
                      FormatNumber(newest_->grad_norm()));
}

std::string WatchView::StepLine(const v1::StepMetrics& step) const {
  std::string line = absl::StrCat(
      "  step ", step.step(), "/", step.total_steps(), "  loss ", FormatNumber(step.loss()),
      "  lr ", FormatNumber(step.learning_rate()), "  grad ", FormatNumber(step.grad_norm()), "  ",
      FormatNumber(step.tokens_per_second()), " tokens/s");
  const auto left = static_cast<double>(step.total_steps() - step.step());
  if (seconds_per_step_ > 0 && left > 0) {
    absl::StrAppend(&line, "  ", ShortDuration(absl::Seconds(left * seconds_per_step_)), " left");
  }
  return line;
}

void WatchView::PrintSummary(const v1::Job& job) {
  Close();
  const absl::Duration time = ToTime(job.end_time()) - ToTime(job.create_time());
  *io_.out << "\n"
           << job.name() << "  " << ColourState(io_, v1::Job::State_Name(job.state()))
           << (job.has_end_time() && job.has_create_time()
                   ? absl::StrCat(" after ", ShortDuration(time))
                   : "")
           << "\n";
  KeyValues lines;
  lines.Add("loss", FirstToLast(losses_));
  lines.Add("eval loss", FirstToLast(eval_losses_));
  if (training_seconds_ > 0) {
    lines.Add("tokens/s", FormatNumber(static_cast<double>(tokens_) / training_seconds_));
  }
  if (peak_memory_bytes_ > 0) lines.Add("peak memory", FormatBytes(peak_memory_bytes_));
  lines.Add("adapter", job.adapter_path());
  if (job.has_error()) {
    const absl::Status error = FromRpcStatus(job.error());
    const Reason reason = ReasonOf(error);
    lines.Add("error", std::string(error.message()));
    if (reason != Reason::kUnspecified) lines.Add("reason", std::string(ReasonName(reason)));
    lines.Add("hint", std::string(HintFor(reason)));
  }
  if (job.state() == v1::Job::FAILED)
    lines.Add("log", absl::StrCat("trainctl job logs ", job.name()));
  lines.Print(io_, 2);
  io_.out->flush();
}

}  // namespace traind::client
