// Runs the real traind-worker on a tiny model against a daemon in this process.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/os/subprocess.h"
#include "common/status/rpc_status.h"
#include "google/protobuf/util/json_util.h"
#include "tests/support/fake_worker_service.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait_until.h"
#include "worker/session/exit_code.h"
#include "worker/session/report_spool.h"

namespace traind {

// One job with a tiny Llama, a byte tokenizer and ten rows; attempts are started one by one, each
// with a folder and a daemon of its own. Prints the worker's log if a test fails.
class WorkerHarness : public testing::Test {
 protected:
  WorkerHarness() {
    Copy("weights/tinyllama", "model");
    Copy("bytetok", "model");
    std::string rows;
    for (int i = 0; i < 10; ++i) {
      absl::StrAppend(&rows, R"({"prompt": "row )", i, R"(", "completion": ")",
                      std::string(static_cast<size_t>(1 + i % 4), static_cast<char>('a' + i)),
                      "\"}\n");
    }
    WriteText("rows.jsonl", rows);
    spec_.mutable_base_model()->set_path(dir_.File("model"));
    spec_.mutable_dataset()->add_train()->set_path(dir_.File("rows.jsonl"));
    spec_.mutable_lora()->set_lora_dropout(0.5);
    auto* training = spec_.mutable_training();
    training->set_per_device_train_batch_size(2);
    training->set_num_train_epochs(2);
    training->set_learning_rate(0.01);
    training->set_save_strategy("steps");
    training->set_save_steps(1);
  }

  ~WorkerHarness() override {
    if (worker_ != nullptr) worker_->Signal(SIGKILL).IgnoreError();
    if (HasFailure() && attempt_ > 0) {
      std::cerr << ReadFile(attempt_dir() + "/worker.log").value_or("no worker.log") << "\n";
    }
    if (daemon_ != nullptr) daemon_->StopServing();
  }

  void WriteText(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(dir_.File(name), text).ok());
  }

  // A folder of its own for the next attempt, and a daemon that is not serving yet.
  void NextAttempt() {
    ++attempt_;
    worker_.reset();
    ASSERT_TRUE(CreateDirectories(attempt_dir()).ok());
    daemon_ = std::make_unique<FakeWorkerService>(target());
  }

  // `fault` as in TRAIND_FAULT.
  void StartWorker(const std::string& fault = "") {
    worker::v1::WorkerAssignment assignment;
    assignment.set_job_uid(job_uid_);
    assignment.set_job_name("jobs/a");
    assignment.set_attempt(attempt_);
    assignment.set_attempt_uid(absl::StrCat("attempt-", attempt_));
    assignment.set_fencing_token(attempt_);
    *assignment.mutable_spec() = spec_;
    assignment.set_daemon_target(target());
    assignment.set_attempt_dir(attempt_dir());
    assignment.set_checkpoints_dir(dir_.File("checkpoints"));
    assignment.set_adapter_dir(dir_.File("adapter"));
    assignment.set_threads(1);
    assignment.mutable_heartbeat_interval()->set_nanos(100'000'000);
    std::string json;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(assignment, &json).ok());
    const std::string path = attempt_dir() + "/assignment.json";
    ASSERT_TRUE(WriteFileAtomically(path, json).ok());
    SubprocessOptions options;
    options.argv = {TRAIND_BIN_DIR "/traind-worker", "--assignment", path};
    options.environment = {{"TRAIND_FAULT", fault}};
    options.output_path = attempt_dir() + "/worker.log";
    auto started = Subprocess::Start(options);
    ASSERT_TRUE(started.ok()) << started.status();
    worker_ = std::make_unique<Subprocess>(*std::move(started));
  }

  // A whole attempt against a daemon that serves from the start.
  ExitState RunAttempt(const std::string& fault = "") {
    NextAttempt();
    daemon_->StartServing();
    StartWorker(fault);
    return WaitForExit();
  }

  ExitState WaitForExit(absl::Duration limit = absl::Seconds(90)) {
    const auto exit = worker_->Wait(limit);
    EXPECT_TRUE(exit.has_value()) << "the worker still runs";
    return exit.value_or(ExitState());
  }

  static void ExpectExit(const ExitState& state, WorkerExit code) {
    EXPECT_EQ(state.kind, ExitState::Kind::kExited) << DescribeExit(state);
    EXPECT_EQ(state.value, static_cast<int>(code)) << DescribeExit(state);
  }

  // What the attempt's spool holds: everything that was reported, delivered or not.
  std::vector<worker::v1::Report> Spooled() {
    auto spool = ReportSpool::Open(attempt_dir() + "/reports.0.spool");
    if (!spool.ok()) return {};
    return (*spool)->ReadAfter(0, 100000).value_or(std::vector<worker::v1::Report>());
  }

  static std::vector<v1::StepMetrics> StepsOf(const std::vector<worker::v1::Report>& reports) {
    std::vector<v1::StepMetrics> steps;
    for (const auto& report : reports) {
      if (report.has_step()) steps.push_back(report.step());
    }
    return steps;
  }

  // The result of a run whose last report is `finished`.
  static worker::v1::Finished FinishedOf(const std::vector<worker::v1::Report>& reports) {
    if (reports.empty() || !reports.back().has_finished()) return {};
    return reports.back().finished();
  }

  static absl::Status ErrorOf(const std::vector<worker::v1::Report>& reports) {
    return FromRpcStatus(FinishedOf(reports).error());
  }

  std::string AdapterBytes() {
    return ReadFile(dir_.File("adapter/adapter_model.safetensors")).value_or("");
  }

  // Forgets checkpoints and adapter: the next attempt belongs to a fresh job.
  void NewJob() {
    job_uid_ += "x";
    ASSERT_TRUE(RemoveAll(dir_.File("checkpoints")).ok());
    ASSERT_TRUE(RemoveAll(dir_.File("adapter")).ok());
  }

  std::string attempt_dir() const { return dir_.File(absl::StrCat("attempt-", attempt_)); }
  std::string target() const { return absl::StrCat("unix:", attempt_dir(), "/daemon.sock"); }

  TempDir dir_;
  v1::TrainingSpec spec_;
  std::unique_ptr<FakeWorkerService> daemon_;
  std::unique_ptr<Subprocess> worker_;
  int attempt_ = 0;
  std::string job_uid_ = "job";

 private:
  void Copy(const std::string& golden, const std::string& to) {
    std::filesystem::copy(absl::StrCat(TRAIND_TEST_DATA, "/golden/", golden), dir_.File(to),
                          std::filesystem::copy_options::recursive);
  }
};

}  // namespace traind
