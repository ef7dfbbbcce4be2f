// The same decoder written with LibTorch's autograd in double precision: the oracle for the
// explicit backward.
#pragma once

#include <vector>

#include "tests/support/fake_weight_source.h"
#include "worker/data/packed_batch.h"
#include "worker/lora/adapter.h"
#include "worker/model/causal_lm.h"

namespace traind {

struct AutogradResult {
  double nll_sum = 0;
  std::vector<double> gradients;  // Of nll_sum / denominator, as the adapter's flat buffer.
};

// Dropout masks are those of the engine for `dropout`.
AutogradResult AutogradLoss(const FakeWeightSource& weights, const Adapter& adapter,
                            const PackedBatch& batch, double denominator,
                            const DropoutKey& dropout);

}  // namespace traind
