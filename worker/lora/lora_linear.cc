#include "worker/lora/lora_linear.h"

#include <utility>

#include "worker/device/gemm.h"

namespace traind {
namespace {

// Columns [first, first + cols) of a matrix of `tokens` rows.
ConstMatrix Columns(const float* data, int64_t tokens, int64_t stride, int64_t first,
                    int64_t cols) {
  return {data + first, tokens, cols, stride, 1};
}
Matrix Columns(float* data, int64_t tokens, int64_t stride, int64_t first, int64_t cols) {
  return {data + first, tokens, cols, stride};
}

}  // namespace

LoraLinear::LoraLinear(int64_t in_features, std::vector<float> weight,
                       const std::vector<Part>& parts, Adapter* adapter)
    : in_features_(in_features), weight_(std::move(weight)), adapter_(adapter) {
  if (adapter != nullptr) {
    rank_ = adapter->layout().options.r;
    scaling_ = static_cast<float>(adapter->layout().options.scaling());
  }
  for (const Part& part : parts) {
    const int64_t first_row = out_features_;
    out_features_ += part.out_features;
    if (adapter == nullptr) continue;
    const std::vector<LoraModule>& modules = adapter->layout().modules;
    for (size_t i = 0; i < modules.size(); ++i) {
      if (modules[i].name != part.name) continue;
      const int64_t column = static_cast<int64_t>(adapted_.size()) * rank_;
      adapted_.push_back({modules[i], i, first_row, column});
    }
  }
}

int64_t LoraLinear::low_size() const { return static_cast<int64_t>(adapted_.size()) * rank_; }

// With dropout each part has an input of its own; without, neighbouring A's serve as one matrix.
std::vector<LoraLinear::Run> LoraLinear::RunsFor(const LoraDropout& dropout) const {
  std::vector<Run> runs;
  for (const Adapted& part : adapted_) {
    const bool joins = !runs.empty() && dropout.probability == 0 &&
                       part.module.a_offset == runs.back().first->module.a_offset +
                                                   runs.back().parts * rank_ * in_features_;
    if (joins) {
      ++runs.back().parts;
    } else {
      runs.push_back({&part, 1});
    }
  }
  return runs;
}

const float* LoraLinear::DroppedInput(const Input& input, const Run& run,
                                      const LoraScratch& scratch) const {
  if (input.dropout.probability == 0) return input.x;
  const cpu::DropoutMask mask{cpu::DeriveKey(input.dropout.key, run.first->index),
                              input.dropout.probability};
  cpu::ApplyDropout(mask, input.x, input.tokens, in_features_, scratch.wide);
  return scratch.wide;
}

void LoraLinear::Forward(const Input& input, const LoraScratch& scratch, bool accumulate,
                         float* low, float* y) const {
  const int64_t tokens = input.tokens;
  Gemm(RowMajor(input.x, tokens, in_features_),
       RowMajor(weight_.data(), out_features_, in_features_).Transposed(), 1, accumulate,
       RowMajor(y, tokens, out_features_));
  if (adapter_ == nullptr) return;
  const float* parameters = std::as_const(*adapter_).parameters().data();
  for (const Run& run : RunsFor(input.dropout)) {
    const float* x = DroppedInput(input, run, scratch);
    const ConstMatrix a =
        RowMajor(parameters + run.first->module.a_offset, run.parts * rank_, in_features_);
    Gemm(RowMajor(x, tokens, in_features_), a.Transposed(), scaling_, false,
         Columns(low, tokens, low_size(), run.first->low_column, run.parts * rank_));
  }
  for (const Adapted& part : adapted_) {
    const LoraModule& module = part.module;
    const ConstMatrix b = RowMajor(parameters + module.b_offset, module.out_features, rank_);
    Gemm(Columns(std::as_const(low), tokens, low_size(), part.low_column, rank_), b.Transposed(), 1,
         true, Columns(y, tokens, out_features_, part.first_row, module.out_features));
  }
}

// d_low = scaling * dy B, and dB += dy^T low.
void LoraLinear::AddLowGradients(const Input& input, const OutputGradient& output,
                                 float* d_low) const {
  const int64_t tokens = input.tokens;
  for (const Adapted& part : adapted_) {
    const LoraModule& module = part.module;
    const ConstMatrix dy =
        Columns(output.dy, tokens, out_features_, part.first_row, module.out_features);
    const float* b = std::as_const(*adapter_).parameters().data() + module.b_offset;
    Gemm(dy, RowMajor(b, module.out_features, rank_), scaling_, false,
         Columns(d_low, tokens, low_size(), part.low_column, rank_));
    Gemm(dy.Transposed(), Columns(output.low, tokens, low_size(), part.low_column, rank_), 1, true,
         RowMajor(adapter_->gradients().data() + module.b_offset, module.out_features, rank_));
  }
}

void LoraLinear::AddInputGradient(const Input& input, const Run& run, const LoraScratch& scratch,
                                  float* dx) const {
  const int64_t tokens = input.tokens;
  const ConstMatrix d_low = Columns(std::as_const(scratch.d_low), tokens, low_size(),
                                    run.first->low_column, run.parts * rank_);
  const float* parameters = std::as_const(*adapter_).parameters().data();
  const ConstMatrix a =
      RowMajor(parameters + run.first->module.a_offset, run.parts * rank_, in_features_);
  if (input.dropout.probability == 0) {
    Gemm(d_low, a, 1, true, RowMajor(dx, tokens, in_features_));
    return;
  }
  Gemm(d_low, a, 1, false, RowMajor(scratch.wide, tokens, in_features_));
  const cpu::DropoutMask mask{cpu::DeriveKey(input.dropout.key, run.first->index),
                              input.dropout.probability};
  cpu::AddDropoutBackward(mask, scratch.wide, tokens, in_features_, dx);
}

void LoraLinear::Backward(const Input& input, const OutputGradient& output,
                          const LoraScratch& scratch, float* dx) const {
  const int64_t tokens = input.tokens;
  if (dx != nullptr) {
    Gemm(RowMajor(output.dy, tokens, out_features_),
         RowMajor(weight_.data(), out_features_, in_features_), 1, false,
         RowMajor(dx, tokens, in_features_));
  }
  if (adapted_.empty()) return;
  AddLowGradients(input, output, scratch.d_low);
  for (const Run& run : RunsFor(input.dropout)) {
    const float* x = DroppedInput(input, run, scratch);
    const ConstMatrix d_low = Columns(std::as_const(scratch.d_low), tokens, low_size(),
                                      run.first->low_column, run.parts * rank_);
    float* d_a = adapter_->gradients().data() + run.first->module.a_offset;
    Gemm(d_low.Transposed(), RowMajor(x, tokens, in_features_), 1, true,
         RowMajor(d_a, run.parts * rank_, in_features_));
    if (dx != nullptr) AddInputGradient(input, run, scratch, dx);
  }
}

}  // namespace traind
