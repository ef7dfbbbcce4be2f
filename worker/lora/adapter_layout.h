// Which linear layers of a base get an adapter, where it lies in the flat buffers, and what it
// starts from. The rules are PEFT's.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/modelspec/model_config.h"
#include "worker/lora/adapter.h"

namespace traind {

// A linear layer of the base, without the head.
struct LinearShape {
  std::string name;  // `model.layers.0.self_attn.q_proj`.
  int64_t in_features = 0;
  int64_t out_features = 0;
  // Layers with the same number read the same input: q/k/v, and gate/up.
  int64_t input_group = 0;
};

// All linear layers of a Llama decoder in the order of the forward pass.
std::vector<LinearShape> LinearLayersOf(const ModelConfig& config);

// Finds the layers that `options.target_modules` names, as PEFT's check_target_module_exists does:
// a list entry hits a name that equals it or ends with "." and the entry; a regular expression has
// to match the whole name (RE2's syntax, so neither look-ahead nor back-references); `all-linear`
// hits every linear layer but the head; nothing given means q_proj and v_proj.
// Errors, all INVALID_ARGUMENT: TARGET_MODULES_NOT_FOUND, listing what exists, if nothing is hit;
// INVALID_FIELD for a bad expression, rank, alpha or dropout, and for the head and the
// embeddings, which cannot be adapted.
absl::StatusOr<AdapterLayout> BuildAdapterLayout(const ModelConfig& config,
                                                 const LoraOptions& options);

// PEFT's `init_lora_weights=True`: A ~ kaiming_uniform(a = sqrt(5)), which is
// U(-1/sqrt(in), 1/sqrt(in)), and B = 0. With false, B is drawn like A (bound 1/sqrt(r)). The same
// `layout.options.seed` gives the same numbers on every machine.
void InitializeLora(Adapter& adapter);

}  // namespace traind
