#include "worker/trainer/torch_runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

namespace traind {

std::string TorchVersion() { return TORCH_VERSION; }

void SetUpTorch(int threads) {
  at::set_num_threads(threads);
  at::globalContext().setFlushDenormal(true);
}

}  // namespace traind
