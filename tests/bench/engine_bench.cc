// Speed and memory of one training step on the CPU.
//
// Workloads (tests/bench/workloads.json: row lengths of each micro-batch; one micro-batch is one
// update): SmolLM2-135M in fp32, LoRA r 16 on all linear layers, every position trained, AdamW and
// clipping included.
//   step_smollm2_dense_4x512   4 rows of 512 tokens: nothing to gain from packing
//   step_smollm2_ragged        8 rows of log-normal lengths: what real rows look like
//
// Usage: engine_bench MODEL.gguf WORKLOADS.json WORKLOAD [STEPS [DROPOUT]]
// Prints one JSON line: median tokens/s and median CPU milliseconds per token after one warm-up
// step (the latter says more on a machine that is shared), peak RSS, the losses.
// tests/bench/peft_baseline.py runs the same rows through PEFT and prints the ratio.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "worker/data/packed_batch.h"
#include "worker/device/process_usage.h"
#include "worker/lora/adapter_layout.h"
#include "worker/model/causal_lm.h"
#include "worker/optim/adamw.h"

namespace traind {
namespace {

template <typename T>
T ValueOrDie(absl::StatusOr<T> result) {
  if (!result.ok()) {
    std::cerr << "engine_bench: " << result.status() << "\n";
    std::exit(1);
  }
  return *std::move(result);
}

// Ids that peft_baseline.py makes by the same formula.
PackedBatch MakeBatch(const std::vector<int64_t>& lengths, int64_t vocab_size) {
  std::vector<Example> examples;
  for (size_t row = 0; row < lengths.size(); ++row) {
    Example example;
    for (int64_t i = 0; i < lengths[row]; ++i) {
      const int64_t id = (i * 7919 + static_cast<int64_t>(row) * 104729 + 13) % vocab_size;
      example.input_ids.push_back(static_cast<int32_t>(id));
      example.supervised.push_back(1);
    }
    examples.push_back(std::move(example));
  }
  std::vector<const Example*> pointers;
  for (const Example& example : examples) pointers.push_back(&example);
  return PackExamples(pointers);
}

// Adapter and model, trained one micro-batch at a time.
class Bench {
 public:
  Bench(const std::string& gguf, double dropout) {
    const std::unique_ptr<WeightSource> weights = ValueOrDie(OpenWeights(gguf));
    LoraOptions options;
    options.r = 16;
    options.lora_alpha = 32;
    options.lora_dropout = dropout;
    options.target_modules = {"all-linear"};
    adapter_ =
        std::make_unique<Adapter>(ValueOrDie(BuildAdapterLayout(weights->config(), options)));
    InitializeLora(*adapter_);
    model_ = ValueOrDie(CausalLm::Load(*weights, adapter_.get()));
  }

  int64_t vocab_size() const { return model_->config().vocab_size; }

  double Step(const PackedBatch& batch, int64_t step) {
    std::fill(adapter_->gradients().begin(), adapter_->gradients().end(), 0.0f);
    const double denominator = static_cast<double>(batch.supervised_tokens);
    const LossSum loss = ValueOrDie(
        model_->ForwardBackward(batch, denominator, {1, static_cast<uint64_t>(step), 0}));
    AdamWUpdate(*adapter_, {}, 2e-4, step + 1);
    return loss.nll_sum / denominator;
  }

 private:
  std::unique_ptr<Adapter> adapter_;
  std::unique_ptr<CausalLm> model_;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main(int argc, char** argv) {
  if (argc < 4) {
    std::cerr << "usage: engine_bench MODEL.gguf WORKLOADS.json WORKLOAD [STEPS [DROPOUT]]\n";
    return 2;
  }
  std::ifstream file(argv[2]);
  const nlohmann::json batches = nlohmann::json::parse(file).at(argv[3]);
  const int64_t steps = argc > 4 ? std::atoll(argv[4]) : 5;
  Bench bench(argv[1], argc > 5 ? std::atof(argv[5]) : 0);
  std::vector<double> rates;
  std::vector<double> cpu_ms;
  std::vector<double> losses;
  for (int64_t step = 0; step <= steps; ++step) {
    const auto lengths = batches[static_cast<size_t>(step) % batches.size()];
    const PackedBatch batch = MakeBatch(lengths.get<std::vector<int64_t>>(), bench.vocab_size());
    const absl::Duration cpu_begin = CpuTimeUsed();
    const auto begin = std::chrono::steady_clock::now();
    losses.push_back(bench.Step(batch, step));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    if (step == 0) continue;
    const double tokens = static_cast<double>(batch.tokens());
    rates.push_back(tokens / elapsed.count());
    cpu_ms.push_back(absl::ToDoubleMilliseconds(CpuTimeUsed() - cpu_begin) / tokens);
  }
  const nlohmann::json result = {{"workload", argv[3]},
                                 {"tokens_per_second", Median(rates)},
                                 {"cpu_ms_per_token", Median(cpu_ms)},
                                 {"peak_rss_mib", ReadMemoryUsage().peak_resident_bytes >> 20},
                                 {"losses", losses}};
  std::cout << result.dump() << std::endl;
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
