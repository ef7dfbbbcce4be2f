// 20 updates against PEFT and Transformers' Trainer (tests/golden/parity/make_lora_curve.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/worker/model/golden.h"
#include "worker/data/batch_plan.h"
#include "worker/lora/adapter_layout.h"
#include "worker/model/causal_lm.h"
#include "worker/optim/adamw.h"
#include "worker/optim/lr_schedule.h"

namespace traind {
namespace {

constexpr double kBar = 1e-4;

// What became of one update.
struct Update {
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
};

class LoraCurveTest : public testing::Test {
 protected:
  void SetUp() override {
    golden_ = ReadGolden("lora_curve/curve.json");
    absl::StatusOr<std::unique_ptr<WeightSource>> weights =
        OpenWeights(std::string(TRAIND_TEST_DATA) + "/golden/lora_curve/model");
    ASSERT_TRUE(weights.ok()) << weights.status();
    LoraOptions options;
    options.r = golden_["lora"]["r"].get<int64_t>();
    options.lora_alpha = golden_["lora"]["lora_alpha"].get<double>();
    options.target_modules = {golden_["lora"]["target_modules"].get<std::string>()};
    absl::StatusOr<AdapterLayout> layout = BuildAdapterLayout((*weights)->config(), options);
    ASSERT_TRUE(layout.ok()) << layout.status();
    adapter_ = std::make_unique<Adapter>(*std::move(layout));
    const std::vector<float> initial = Flatten("initial");
    std::copy(initial.begin(), initial.end(), adapter_->parameters().begin());
    absl::StatusOr<std::unique_ptr<CausalLm>> model = CausalLm::Load(**weights, adapter_.get());
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
    for (const auto& row : golden_["rows"]) {
      examples_.push_back({row["input_ids"].get<std::vector<int32_t>>(),
                           row["supervised"].get<std::vector<uint8_t>>()});
    }
  }

  // The golden's named matrices in the order of the adapter's flat buffers.
  std::vector<float> Flatten(const char* section) const {
    const AdapterLayout& layout = adapter_->layout();
    std::vector<float> flat(static_cast<size_t>(layout.size));
    for (const LoraModule& module : layout.modules) {
      const auto copy = [&](const char* suffix, int64_t offset) {
        const auto values = golden_[section].at(module.name + suffix).get<std::vector<float>>();
        std::copy(values.begin(), values.end(), flat.begin() + offset);
      };
      copy(".lora_A", module.a_offset);
      copy(".lora_B", module.b_offset);
    }
    return flat;
  }

  // Accumulates the gradients of update `step`; returns its loss.
  double Accumulate(int64_t step) {
    const int64_t accumulation = golden_["training"]["gradient_accumulation_steps"].get<int64_t>();
    const int64_t rows = golden_["training"]["per_device_train_batch_size"].get<int64_t>();
    std::vector<PackedBatch> window;
    for (int64_t i = 0; i < accumulation; ++i) {
      const auto first = examples_.begin() + (step * accumulation + i) * rows;
      window.push_back(Pack({first, first + rows}));
    }
    const double denominator = static_cast<double>(WindowDenominator(window, LossDenominator::kHf));
    std::fill(adapter_->gradients().begin(), adapter_->gradients().end(), 0.0f);
    double loss = 0;
    for (const PackedBatch& batch : window) {
      const absl::StatusOr<LossSum> sum = model_->ForwardBackward(batch, denominator, {});
      EXPECT_TRUE(sum.ok()) << sum.status();
      loss += sum->nll_sum / denominator;
    }
    return loss;
  }

  std::vector<Update> Train() {
    const auto& training = golden_["training"];
    AdamWOptions options;
    options.weight_decay = training["weight_decay"].get<double>();
    const int64_t steps = training["max_steps"].get<int64_t>();
    const LrSchedule schedule{LrSchedulerType::kLinear, training["learning_rate"].get<double>(),
                              training["warmup_steps"].get<int64_t>(), steps};
    std::vector<Update> updates;
    for (int64_t step = 0; step < steps; ++step) {
      const double loss = Accumulate(step);
      const double rate = schedule.RateAt(step);
      const UpdateResult result = AdamWUpdate(*adapter_, options, rate, step + 1);
      EXPECT_TRUE(result.applied);
      updates.push_back({loss, result.grad_norm, rate});
    }
    return updates;
  }

  nlohmann::json golden_;
  std::unique_ptr<Adapter> adapter_;
  std::unique_ptr<CausalLm> model_;
  std::vector<Example> examples_;
};

double Relative(double actual, double expected) {
  return std::abs(actual - expected) / std::max(1e-12, std::abs(expected));
}

// L2 norm of the difference over that of `expected`, in one range.
double RelativeNorm(absl::Span<const float> actual, absl::Span<const float> expected) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = static_cast<double>(expected[i]);
    difference += (static_cast<double>(actual[i]) - e) * (static_cast<double>(actual[i]) - e);
    norm += e * e;
  }
  return std::sqrt(difference / norm);
}

TEST_F(LoraCurveTest, GradientsOfTheFirstUpdateEqualPeft) {
  Accumulate(0);
  const std::vector<float> expected = Flatten("first_gradients");
  const int64_t r = adapter_->layout().options.r;
  double worst = 0;
  const auto check = [&](int64_t offset, int64_t size) {
    const auto at = static_cast<size_t>(offset);
    const auto count = static_cast<size_t>(size);
    worst = std::max(worst, RelativeNorm(adapter_->gradients().subspan(at, count),
                                         absl::MakeConstSpan(expected).subspan(at, count)));
  };
  for (const LoraModule& module : adapter_->layout().modules) {
    check(module.a_offset, r * module.in_features);
    check(module.b_offset, r * module.out_features);
  }
  std::cout << "worst relative error of a matrix " << worst << " (bar " << kBar << ")\n";
  EXPECT_LE(worst, kBar);
}

TEST_F(LoraCurveTest, LossCurveEqualsPeft) {
  const std::vector<Update> updates = Train();
  ASSERT_EQ(updates.size(), golden_["updates"].size());
  double worst_loss = 0;
  double worst_norm = 0;
  for (size_t i = 0; i < updates.size(); ++i) {
    const auto& expected = golden_["updates"][i];
    worst_loss = std::max(worst_loss, Relative(updates[i].loss, expected["loss"].get<double>()));
    worst_norm =
        std::max(worst_norm, Relative(updates[i].grad_norm, expected["grad_norm"].get<double>()));
    EXPECT_NEAR(updates[i].learning_rate, expected["learning_rate"].get<double>(), 1e-15);
  }
  const double final_error = RelativeNorm(adapter_->parameters(), Flatten("final"));
  std::cout << "worst relative errors: loss " << worst_loss << ", gradient norm " << worst_norm
            << ", final adapter " << final_error << " (bar " << kBar << ")\n";
  EXPECT_LE(worst_loss, kBar);
  EXPECT_LE(worst_norm, kBar);
  EXPECT_LE(final_error, kBar);
  EXPECT_LT(updates.back().loss, updates.front().loss);
}

}  // namespace
}  // namespace traind
