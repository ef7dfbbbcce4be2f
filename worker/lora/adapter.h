// The adapter: every trainable number in one flat buffer, with its gradient and its moments in
// three more, and a table that says which part of them is which LoRA matrix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace traind {

// Names as in PEFT's LoraConfig.
struct LoraOptions {
  int64_t r = 8;
  double lora_alpha = 8;
  double lora_dropout = 0;
  bool use_rslora = false;
  bool init_lora_weights = true;
  // Empty: q_proj and v_proj. `all-linear`, a list of suffixes, or one regular expression.
  std::vector<std::string> target_modules;
  bool target_is_regex = false;
  uint64_t seed = 42;

  double scaling() const;  // alpha / r, or alpha / sqrt(r) with use_rslora.
};

// One adapted linear layer of the base: y += scaling * B (A x).
struct LoraModule {
  std::string name;  // Path in the base model, such as `model.layers.0.self_attn.q_proj`.
  int64_t in_features = 0;
  int64_t out_features = 0;
  int64_t a_offset = 0;  // A is [r, in_features], row-major, at this index of the flat buffer.
  int64_t b_offset = 0;  // B is [out_features, r].
};

// Where everything is. Modules are in the base model's order. Matrices A of modules that read the
// same input (q/k/v, gate/up) lie one after the other, so that one product serves them all.
struct AdapterLayout {
  LoraOptions options;
  std::vector<LoraModule> modules;
  int64_t size = 0;  // Numbers in each flat buffer.
  // Entries of options.target_modules that hit nothing while others did; worth a warning.
  std::vector<std::string> unused_targets;
};

// Owns the flat fp32 buffers. Thread-compatible.
class Adapter {
 public:
  // Buffers are zero; see InitializeLora.
  explicit Adapter(AdapterLayout layout);

  const AdapterLayout& layout() const { return layout_; }
  absl::Span<float> parameters() { return absl::MakeSpan(parameters_); }
  absl::Span<const float> parameters() const { return parameters_; }
  absl::Span<float> gradients() { return absl::MakeSpan(gradients_); }
  absl::Span<float> exp_avg() { return absl::MakeSpan(exp_avg_); }        // AdamW's m.
  absl::Span<float> exp_avg_sq() { return absl::MakeSpan(exp_avg_sq_); }  // AdamW's v.

 private:
  AdapterLayout layout_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> exp_avg_;
  std::vector<float> exp_avg_sq_;
};

}  // namespace traind
