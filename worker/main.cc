// traind-worker: one rank of one attempt.
#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_join.h"
#include "worker/session/worker_process.h"
#include "worker/trainer/cpu_info.h"
#include "worker/trainer/torch_runtime.h"

namespace {

int PrintEnvironment() {
  const auto features = traind::CpuFeatures();
  std::cout << "cpu_features: " << absl::StrJoin(features, " ") << "\n"
            << "libtorch: " << traind::TorchVersion() << "\n"
            << "threads: " << traind::PhysicalCores() << "\n";
  const absl::Status cpu = traind::CheckCpu(features);
  if (!cpu.ok()) std::cerr << "traind-worker: " << cpu.message() << "\n";
  return cpu.ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Trains one attempt of a job. Started by traind.", "traind-worker");
  std::string assignment;
  bool check = false;
  app.add_option("--assignment", assignment, "What to train: a WorkerAssignment in JSON");
  app.add_flag("--check", check, "Print what this machine offers and exit");
  CLI11_PARSE(app, argc, argv);
  if (check) return PrintEnvironment();
  if (assignment.empty()) {
    std::cerr << "traind-worker: needs --assignment FILE or --check\n";
    return static_cast<int>(traind::WorkerExit::kBadAssignment);
  }
  return static_cast<int>(traind::RunWorker(assignment));
}
