#include "worker/lora/adapter.h"

#include <cmath>
#include <utility>

namespace traind {

double LoraOptions::scaling() const {
  const double rank = static_cast<double>(r);
  return use_rslora ? lora_alpha / std::sqrt(rank) : lora_alpha / rank;
}

Adapter::Adapter(AdapterLayout layout)
    : layout_(std::move(layout)),
      parameters_(static_cast<size_t>(layout_.size)),
      gradients_(static_cast<size_t>(layout_.size)),
      exp_avg_(static_cast<size_t>(layout_.size)),
      exp_avg_sq_(static_cast<size_t>(layout_.size)) {}

}  // namespace traind
