#include "worker/model/llama.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"
#include "worker/device/cpu/dropout.h"
#include "worker/device/gemm.h"

namespace traind {
namespace {

absl::Status BatchError(const std::string& what) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kDatasetInvalid,
               absl::StrCat("The batch ", what, "."), {{"batch", what}});
}

absl::StatusOr<std::vector<float>> ReadTensor(const WeightSource& weights, absl::string_view name,
                                              std::vector<int64_t> shape) {
  const int64_t size =
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<int64_t>());
  std::vector<float> values(static_cast<size_t>(size));
  TRAIND_RETURN_IF_ERROR(weights.ReadFloat32(name, shape, absl::MakeSpan(values)));
  return values;
}

SupervisedTargets TargetsOf(const PackedBatch& batch) {
  SupervisedTargets targets;
  for (size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i] == kIgnoreIndex) continue;
    targets.positions.push_back(static_cast<int32_t>(i));
    targets.ids.push_back(batch.targets[i]);
  }
  return targets;
}

// Adds up per position, in order, what belongs to each row.
LossSum SumByRow(const PackedBatch& batch, const SupervisedTargets& targets,
                 const std::vector<double>& nll) {
  LossSum loss;
  loss.targets = targets.size();
  loss.row_nll_sum.resize(static_cast<size_t>(batch.rows()));
  loss.row_targets.resize(static_cast<size_t>(batch.rows()));
  size_t row = 0;
  for (size_t i = 0; i < nll.size(); ++i) {
    while (targets.positions[i] >= batch.row_offsets[row + 1]) ++row;
    loss.row_nll_sum[row] += nll[i];
    ++loss.row_targets[row];
    loss.nll_sum += nll[i];
  }
  return loss;
}

// One sequence without targets.
PackedBatch SingleRow(const std::vector<int32_t>& ids, int64_t first_position) {
  PackedBatch batch;
  batch.input_ids = ids;
  batch.position_ids.resize(ids.size());
  std::iota(batch.position_ids.begin(), batch.position_ids.end(),
            static_cast<int32_t>(first_position));
  batch.targets.assign(ids.size(), kIgnoreIndex);
  batch.row_offsets = {0, static_cast<int32_t>(ids.size())};
  return batch;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CausalLm>> CausalLm::Load(const WeightSource& weights,
                                                         Adapter* adapter) {
  return Llama::Load(weights, adapter);
}

absl::StatusOr<std::unique_ptr<CausalLm>> Llama::Load(const WeightSource& weights,
                                                      Adapter* adapter) {
  TRAIND_RETURN_IF_ERROR(CheckProcessor());
  const ModelConfig& config = weights.config();
  const std::vector<int64_t> table = {config.vocab_size, config.hidden_size};
  Outer outer;
  TRAIND_ASSIGN_OR_RETURN(outer.embeddings,
                          ReadTensor(weights, "model.embed_tokens.weight", table));
  TRAIND_ASSIGN_OR_RETURN(outer.final_norm,
                          ReadTensor(weights, "model.norm.weight", {config.hidden_size}));
  if (!config.tie_word_embeddings) {
    TRAIND_ASSIGN_OR_RETURN(outer.head, ReadTensor(weights, "lm_head.weight", table));
  }
  std::vector<std::unique_ptr<DecoderLayer>> layers;
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    TRAIND_ASSIGN_OR_RETURN(std::unique_ptr<DecoderLayer> layer,
                            DecoderLayer::Load(weights, i, adapter));
    layers.push_back(std::move(layer));
  }
  return std::unique_ptr<CausalLm>(new Llama(config, std::move(outer), std::move(layers), adapter));
}

Llama::Llama(const ModelConfig& config, Outer outer,
             std::vector<std::unique_ptr<DecoderLayer>> layers, Adapter* adapter)
    : config_(config),
      outer_(std::move(outer)),
      layers_(std::move(layers)),
      adapter_(adapter),
      rotary_(config.head_dim, config.rope_theta),
      cross_entropy_(Head()) {
  const auto adapted = std::find_if(layers_.begin(), layers_.end(), [](const auto& layer) {
    return layer->FirstAdapted() != LayerStage::kNone;
  });
  first_adapted_layer_ = static_cast<size_t>(adapted - layers_.begin());
}

LmHead Llama::Head() const {
  const std::vector<float>& weight = outer_.head.empty() ? outer_.embeddings : outer_.head;
  return {{outer_.final_norm.data(), config_.hidden_size, static_cast<float>(config_.rms_norm_eps)},
          weight.data(),
          config_.vocab_size};
}

bool Llama::HasDropout() const {
  return adapter_ != nullptr && adapter_->layout().options.lora_dropout > 0;
}

absl::Status Llama::CheckBatch(const PackedBatch& batch) const {
  const size_t tokens = batch.input_ids.size();
  if (tokens == 0) return BatchError("has no tokens");
  if (batch.position_ids.size() != tokens || batch.targets.size() != tokens) {
    return BatchError("has position_ids or targets of another length than input_ids");
  }
  const std::vector<int32_t>& offsets = batch.row_offsets;
  if (offsets.size() < 2 || offsets.front() != 0 ||
      offsets.back() != static_cast<int32_t>(tokens) ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    return BatchError("has row_offsets that do not divide its tokens into rows");
  }
  for (size_t i = 0; i < tokens; ++i) {
    const auto outside = [&](int32_t id) { return id < 0 || id >= config_.vocab_size; };
    if (outside(batch.input_ids[i]) ||
        (batch.targets[i] != kIgnoreIndex && outside(batch.targets[i]))) {
      return BatchError(absl::StrCat("has, at token ", i, ", id ", batch.input_ids[i],
                                     " and target ", batch.targets[i],
                                     ", but the model's vocabulary has ", config_.vocab_size,
                                     " ids; is this the model's own tokenizer?"));
    }
    if (batch.position_ids[i] < 0) return BatchError("has a negative position");
  }
  return absl::OkStatus();
}

Llama::Buffers Llama::LayOut(int64_t tokens, int64_t targets, PassKind kind) {
  const DecoderLayer& any = *layers_.front();  // Layers differ in nothing but their adapters.
  const bool backward = kind == PassKind::kBackward;
  const size_t first_kept = backward ? first_adapted_layer_ : layers_.size();
  const int64_t hidden = tokens * config_.hidden_size;
  int64_t low_size = 0;
  for (const auto& layer : layers_) low_size = std::max(low_size, layer->LargestLowSize());
  Buffers buffers;
  any.LayOutForward(arena_, tokens, buffers.scratch);
  if (backward) {
    any.LayOutBackward(arena_, tokens, buffers.scratch);
    buffers.scratch.lora.d_low = arena_.Take(tokens * low_size);
    if (HasDropout()) any.LayOutDropout(arena_, tokens, buffers.scratch);
  }
  LayerActivations shared;
  if (first_kept > 0) {
    shared.x = arena_.Take(hidden);
    any.LayOut(arena_, tokens, shared);
    float* low = arena_.Take(tokens * low_size);
    shared.low_qkv = shared.low_o = shared.low_gate_up = shared.low_down = low;
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    LayerActivations activations = shared;
    if (i >= first_kept) {
      activations.x = arena_.Take(hidden);
      layers_[i]->LayOut(arena_, tokens, activations);
    }
    buffers.layers.push_back(activations);
  }
  buffers.final_x = first_kept == layers_.size() ? shared.x : arena_.Take(hidden);
  cross_entropy_.LayOut(arena_, targets);
  return buffers;
}

absl::StatusOr<Llama::Buffers> Llama::Prepare(int64_t tokens, int64_t targets, PassKind kind) {
  arena_.BeginMeasuring();
  LayOut(tokens, targets, kind);
  TRAIND_RETURN_IF_ERROR(arena_.Reserve());
  return LayOut(tokens, targets, kind);
}

PassContext Llama::ContextOf(const PackedBatch& batch) {
  const int32_t last = *std::max_element(batch.position_ids.begin(), batch.position_ids.end());
  rotary_.EnsurePositions(int64_t{last} + 1);
  PassContext pass;
  pass.tokens = batch.tokens();
  pass.row_offsets = batch.row_offsets;
  pass.position_ids = batch.position_ids.data();
  pass.rotary = rotary_.table();
  return pass;
}

void Llama::Embed(const std::vector<int32_t>& ids, float* x) const {
  const int64_t hidden = config_.hidden_size;
  for (const int32_t id : ids) {
    x = std::copy_n(outer_.embeddings.data() + id * hidden, hidden, x);
  }
}

void Llama::Forward(const PassContext& pass, const std::vector<int32_t>& ids,
                    const Buffers& buffers) {
  Embed(ids, buffers.layers.front().x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    float* out = i + 1 < layers_.size() ? buffers.layers[i + 1].x : buffers.final_x;
    layers_[i]->Forward(pass, buffers.scratch, buffers.layers[i], out);
  }
}

void Llama::Backward(const PassContext& pass, const Buffers& buffers) {
  for (size_t i = layers_.size(); i-- > first_adapted_layer_;) {
    const LayerStage last =
        i == first_adapted_layer_ ? layers_[i]->FirstAdapted() : LayerStage::kNone;
    layers_[i]->Backward(pass, buffers.scratch, buffers.layers[i], last);
  }
}

absl::StatusOr<LossSum> Llama::ForwardBackward(const PackedBatch& batch, double denominator,
                                               const DropoutKey& dropout) {
  if (first_adapted_layer_ == layers_.size()) {
    return Error(absl::StatusCode::kFailedPrecondition, Reason::kBug,
                 "The model was loaded without an adapter, so nothing can be trained.");
  }
  TRAIND_RETURN_IF_ERROR(CheckBatch(batch));
  const SupervisedTargets targets = TargetsOf(batch);
  TRAIND_ASSIGN_OR_RETURN(const Buffers buffers,
                          Prepare(batch.tokens(), targets.size(), PassKind::kBackward));
  PassContext pass = ContextOf(batch);
  pass.dropout.probability = adapter_->layout().options.lora_dropout;
  pass.dropout.key =
      cpu::DeriveKey(cpu::DeriveKey(dropout.seed, dropout.step), dropout.micro_batch);
  Forward(pass, batch.input_ids, buffers);
  float* d_x = buffers.scratch.d_x;
  std::fill_n(d_x, batch.tokens() * config_.hidden_size, 0.0f);
  const std::vector<double> nll = cross_entropy_.ForwardBackward(
      buffers.final_x, targets, static_cast<float>(1 / denominator), d_x);
  if (targets.size() > 0) Backward(pass, buffers);
  return SumByRow(batch, targets, nll);
}

absl::StatusOr<LossSum> Llama::Evaluate(const PackedBatch& batch) {
  TRAIND_RETURN_IF_ERROR(CheckBatch(batch));
  const SupervisedTargets targets = TargetsOf(batch);
  TRAIND_ASSIGN_OR_RETURN(const Buffers buffers,
                          Prepare(batch.tokens(), targets.size(), PassKind::kForward));
  Forward(ContextOf(batch), batch.input_ids, buffers);
  return SumByRow(batch, targets, cross_entropy_.Evaluate(buffers.final_x, targets));
}

absl::StatusOr<std::vector<float>> Llama::Logits(const PackedBatch& batch) {
  TRAIND_RETURN_IF_ERROR(CheckBatch(batch));
  TRAIND_ASSIGN_OR_RETURN(const Buffers buffers, Prepare(batch.tokens(), 0, PassKind::kForward));
  Forward(ContextOf(batch), batch.input_ids, buffers);
  return HeadLogits(buffers.final_x, batch.tokens());
}

std::vector<float> Llama::HeadLogits(const float* x, int64_t rows) const {
  const LmHead head = Head();
  std::vector<float> normed(static_cast<size_t>(rows * head.norm.size));
  std::vector<float> logits(static_cast<size_t>(rows * head.vocab_size));
  cpu::RmsNormForward(head.norm, x, rows, normed.data());
  Gemm(RowMajor(std::as_const(normed).data(), rows, head.norm.size),
       RowMajor(head.weight, head.vocab_size, head.norm.size).Transposed(), 1, false,
       RowMajor(logits.data(), rows, head.vocab_size));
  return logits;
}

// The likeliest token after `ids`, which follow what the caches hold.
absl::StatusOr<int32_t> Llama::NextToken(const std::vector<int32_t>& ids, int64_t first_position,
                                         std::vector<DecoderLayer::Cache>& caches) {
  const PackedBatch batch = SingleRow(ids, first_position);
  TRAIND_RETURN_IF_ERROR(CheckBatch(batch));
  TRAIND_ASSIGN_OR_RETURN(const Buffers buffers, Prepare(batch.tokens(), 0, PassKind::kForward));
  const PassContext pass = ContextOf(batch);
  float* x = buffers.final_x;
  Embed(ids, x);
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i]->ForwardCached(pass, buffers.scratch, buffers.layers[i], caches[i], x);
  }
  const std::vector<float> logits = HeadLogits(x + (batch.tokens() - 1) * config_.hidden_size, 1);
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

absl::StatusOr<std::vector<int32_t>> Llama::GenerateGreedy(const std::vector<int32_t>& prompt,
                                                           int64_t max_new_tokens,
                                                           const std::vector<int32_t>& stop_ids) {
  std::vector<DecoderLayer::Cache> caches(layers_.size());
  std::vector<int32_t> answer;
  std::vector<int32_t> next = prompt;
  int64_t position = 0;
  for (int64_t i = 0; i < max_new_tokens; ++i) {
    TRAIND_ASSIGN_OR_RETURN(const int32_t token, NextToken(next, position, caches));
    if (std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end()) break;
    position += static_cast<int64_t>(next.size());
    answer.push_back(token);
    next = {token};
  }
  return answer;
}

}  // namespace traind
