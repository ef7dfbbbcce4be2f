#include "worker/model/decoder_layer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind {
namespace {

// A linear layer of the base in one stacked weight.
struct StackedPart {
  const char* name;
  int64_t rows;
};

// Reads [rows, cols] weights one below the other.
absl::StatusOr<std::vector<float>> ReadStacked(const WeightSource& weights,
                                               const std::string& prefix,
                                               const std::vector<StackedPart>& parts,
                                               int64_t cols) {
  int64_t rows = 0;
  for (const StackedPart& part : parts) rows += part.rows;
  std::vector<float> stacked(static_cast<size_t>(rows * cols));
  absl::Span<float> rest = absl::MakeSpan(stacked);
  for (const StackedPart& part : parts) {
    const size_t size = static_cast<size_t>(part.rows * cols);
    TRAIND_RETURN_IF_ERROR(weights.ReadFloat32(absl::StrCat(prefix, part.name, ".weight"),
                                               {part.rows, cols}, rest.first(size)));
    rest.remove_prefix(size);
  }
  return stacked;
}

absl::StatusOr<std::vector<float>> ReadNorm(const WeightSource& weights, const std::string& name,
                                            int64_t size) {
  std::vector<float> norm(static_cast<size_t>(size));
  TRAIND_RETURN_IF_ERROR(weights.ReadFloat32(name, {size}, absl::MakeSpan(norm)));
  return norm;
}

}  // namespace

struct DecoderLayer::Weights {
  std::vector<float> input_norm;
  std::vector<float> middle_norm;
  std::vector<float> qkv;
  std::vector<float> output;
  std::vector<float> gate_up;
  std::vector<float> down;
};

absl::StatusOr<std::unique_ptr<DecoderLayer>> DecoderLayer::Load(const WeightSource& weights,
                                                                 int64_t index, Adapter* adapter) {
  const ModelConfig& config = weights.config();
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  const std::string prefix = absl::StrCat("model.layers.", index, ".");
  Weights read;
  TRAIND_ASSIGN_OR_RETURN(read.input_norm,
                          ReadNorm(weights, prefix + "input_layernorm.weight", hidden));
  TRAIND_ASSIGN_OR_RETURN(read.middle_norm,
                          ReadNorm(weights, prefix + "post_attention_layernorm.weight", hidden));
  TRAIND_ASSIGN_OR_RETURN(read.qkv, ReadStacked(weights, prefix,
                                                {{"self_attn.q_proj", config.query_size()},
                                                 {"self_attn.k_proj", config.key_value_size()},
                                                 {"self_attn.v_proj", config.key_value_size()}},
                                                hidden));
  TRAIND_ASSIGN_OR_RETURN(read.output, ReadStacked(weights, prefix, {{"self_attn.o_proj", hidden}},
                                                   config.query_size()));
  TRAIND_ASSIGN_OR_RETURN(
      read.gate_up,
      ReadStacked(weights, prefix, {{"mlp.gate_proj", inner}, {"mlp.up_proj", inner}}, hidden));
  TRAIND_ASSIGN_OR_RETURN(read.down,
                          ReadStacked(weights, prefix, {{"mlp.down_proj", hidden}}, inner));
  return std::unique_ptr<DecoderLayer>(new DecoderLayer(config, std::move(read), adapter, prefix));
}

DecoderLayer::DecoderLayer(const ModelConfig& config, Weights weights, Adapter* adapter,
                           const std::string& prefix)
    : hidden_(config.hidden_size),
      intermediate_(config.intermediate_size),
      epsilon_(static_cast<float>(config.rms_norm_eps)),
      attention_{config.num_attention_heads, config.num_key_value_heads, config.head_dim},
      input_norm_(std::move(weights.input_norm)),
      middle_norm_(std::move(weights.middle_norm)),
      qkv_(hidden_, std::move(weights.qkv),
           {{prefix + "self_attn.q_proj", config.query_size()},
            {prefix + "self_attn.k_proj", config.key_value_size()},
            {prefix + "self_attn.v_proj", config.key_value_size()}},
           adapter),
      output_(config.query_size(), std::move(weights.output),
              {{prefix + "self_attn.o_proj", hidden_}}, adapter),
      gate_up_(hidden_, std::move(weights.gate_up),
               {{prefix + "mlp.gate_proj", intermediate_}, {prefix + "mlp.up_proj", intermediate_}},
               adapter),
      down_(intermediate_, std::move(weights.down), {{prefix + "mlp.down_proj", hidden_}},
            adapter) {}

LayerStage DecoderLayer::FirstAdapted() const {
  if (qkv_.has_adapter()) return LayerStage::kQkv;
  if (output_.has_adapter()) return LayerStage::kOutput;
  if (gate_up_.has_adapter()) return LayerStage::kGateUp;
  if (down_.has_adapter()) return LayerStage::kDown;
  return LayerStage::kNone;
}

int64_t DecoderLayer::LargestLowSize() const {
  return std::max({qkv_.low_size(), output_.low_size(), gate_up_.low_size(), down_.low_size()});
}

cpu::RmsNorm DecoderLayer::InputNorm() const { return {input_norm_.data(), hidden_, epsilon_}; }

cpu::RmsNorm DecoderLayer::MiddleNorm() const { return {middle_norm_.data(), hidden_, epsilon_}; }

void DecoderLayer::LayOut(Arena& arena, int64_t tokens, LayerActivations& activations) const {
  activations.qkv = arena.Take(tokens * attention_.qkv_size());
  activations.attention = arena.Take(tokens * attention_.query_size());
  activations.log_sum_exp = arena.Take(tokens * attention_.query_heads);
  activations.middle = arena.Take(tokens * hidden_);
  activations.gate_up = arena.Take(tokens * 2 * intermediate_);
  activations.low_qkv = arena.Take(tokens * qkv_.low_size());
  activations.low_o = arena.Take(tokens * output_.low_size());
  activations.low_gate_up = arena.Take(tokens * gate_up_.low_size());
  activations.low_down = arena.Take(tokens * down_.low_size());
}

void DecoderLayer::LayOutForward(Arena& arena, int64_t tokens, LayerScratch& scratch) const {
  scratch.normed = arena.Take(tokens * hidden_);
  scratch.inner = arena.Take(tokens * intermediate_);
}

void DecoderLayer::LayOutBackward(Arena& arena, int64_t tokens, LayerScratch& scratch) const {
  scratch.d_x = arena.Take(tokens * hidden_);
  scratch.d_wide = arena.Take(tokens * std::max(hidden_, intermediate_));
  scratch.d_qkv = arena.Take(tokens * attention_.qkv_size());
  scratch.d_attention = arena.Take(tokens * attention_.query_size());
}

void DecoderLayer::LayOutDropout(Arena& arena, int64_t tokens, LayerScratch& scratch) const {
  scratch.lora.wide =
      arena.Take(tokens * std::max({hidden_, intermediate_, attention_.query_size()}));
}

void DecoderLayer::ProjectQkv(const PassContext& pass, const LayerScratch& scratch,
                              const LayerActivations& activations) const {
  cpu::RmsNormForward(InputNorm(), activations.x, pass.tokens, scratch.normed);
  qkv_.Forward({scratch.normed, pass.tokens, pass.dropout}, scratch.lora, false,
               activations.low_qkv, activations.qkv);
  cpu::ApplyRotary(pass.rotary,
                   {activations.qkv, pass.tokens, attention_.qkv_size(),
                    attention_.query_heads + attention_.key_value_heads, pass.position_ids},
                   cpu::RotaryDirection::kForward);
}

void DecoderLayer::FinishForward(const PassContext& pass, const LayerScratch& scratch,
                                 const LayerActivations& activations, float* out) const {
  const int64_t tokens = pass.tokens;
  std::copy_n(activations.x, tokens * hidden_, activations.middle);
  output_.Forward({activations.attention, tokens, pass.dropout}, scratch.lora, true,
                  activations.low_o, activations.middle);
  cpu::RmsNormForward(MiddleNorm(), activations.middle, tokens, scratch.normed);
  gate_up_.Forward({scratch.normed, tokens, pass.dropout}, scratch.lora, false,
                   activations.low_gate_up, activations.gate_up);
  cpu::SwigluForward(activations.gate_up, tokens, intermediate_, scratch.inner);
  std::copy_n(activations.middle, tokens * hidden_, out);
  down_.Forward({scratch.inner, tokens, pass.dropout}, scratch.lora, true, activations.low_down,
                out);
}

void DecoderLayer::Forward(const PassContext& pass, const LayerScratch& scratch,
                           const LayerActivations& activations, float* out) const {
  ProjectQkv(pass, scratch, activations);
  cpu::AttentionForward(attention_, pass.row_offsets, activations.qkv, activations.attention,
                        activations.log_sum_exp);
  FinishForward(pass, scratch, activations, out);
}

void DecoderLayer::ForwardCached(const PassContext& pass, const LayerScratch& scratch,
                                 const LayerActivations& activations, Cache& cache,
                                 float* out) const {
  ProjectQkv(pass, scratch, activations);
  const int64_t size = attention_.key_value_size();
  const int64_t first = static_cast<int64_t>(cache.keys.size()) / size;
  for (int64_t token = 0; token < pass.tokens; ++token) {
    const float* key = activations.qkv + token * attention_.qkv_size() + attention_.query_size();
    cache.keys.insert(cache.keys.end(), key, key + size);
    cache.values.insert(cache.values.end(), key + size, key + 2 * size);
  }
  cpu::CachedAttention(attention_, {activations.qkv, pass.tokens, first},
                       {cache.keys.data(), cache.values.data()}, activations.attention);
  FinishForward(pass, scratch, activations, out);
}

void DecoderLayer::Backward(const PassContext& pass, const LayerScratch& scratch,
                            const LayerActivations& activations, LayerStage last) const {
  if (BackwardMlp(pass, scratch, activations, last)) {
    BackwardAttention(pass, scratch, activations, last);
  }
}

// Returns false if nothing below has to be computed.
bool DecoderLayer::BackwardMlp(const PassContext& pass, const LayerScratch& scratch,
                               const LayerActivations& activations, LayerStage last) const {
  const int64_t tokens = pass.tokens;
  // Norms and SwiGLU are computed again: cheaper than to keep their outputs.
  cpu::SwigluForward(activations.gate_up, tokens, intermediate_, scratch.inner);
  down_.Backward({scratch.inner, tokens, pass.dropout}, {scratch.d_x, activations.low_down},
                 scratch.lora, last == LayerStage::kDown ? nullptr : scratch.d_wide);
  if (last == LayerStage::kDown) return false;
  cpu::SwigluBackward(scratch.d_wide, tokens, intermediate_, activations.gate_up);
  cpu::RmsNormForward(MiddleNorm(), activations.middle, tokens, scratch.normed);
  gate_up_.Backward({scratch.normed, tokens, pass.dropout},
                    {activations.gate_up, activations.low_gate_up}, scratch.lora,
                    last == LayerStage::kGateUp ? nullptr : scratch.d_wide);
  if (last == LayerStage::kGateUp) return false;
  cpu::RmsNormBackward(MiddleNorm(), activations.middle, scratch.d_wide, tokens, scratch.d_x);
  return true;
}

void DecoderLayer::BackwardAttention(const PassContext& pass, const LayerScratch& scratch,
                                     const LayerActivations& activations, LayerStage last) const {
  const int64_t tokens = pass.tokens;
  output_.Backward({activations.attention, tokens, pass.dropout}, {scratch.d_x, activations.low_o},
                   scratch.lora, last == LayerStage::kOutput ? nullptr : scratch.d_attention);
  if (last == LayerStage::kOutput) return;
  cpu::AttentionBackward(attention_, pass.row_offsets,
                         {activations.qkv, activations.attention, activations.log_sum_exp},
                         scratch.d_attention, scratch.d_qkv);
  cpu::ApplyRotary(pass.rotary,
                   {scratch.d_qkv, tokens, attention_.qkv_size(),
                    attention_.query_heads + attention_.key_value_heads, pass.position_ids},
                   cpu::RotaryDirection::kBackward);
  cpu::RmsNormForward(InputNorm(), activations.x, tokens, scratch.normed);
  qkv_.Backward({scratch.normed, tokens, pass.dropout}, {scratch.d_qkv, activations.low_qkv},
                scratch.lora, last == LayerStage::kQkv ? nullptr : scratch.d_wide);
  if (last == LayerStage::kQkv) return;
  cpu::RmsNormBackward(InputNorm(), activations.x, scratch.d_wide, tokens, scratch.d_x);
}

}  // namespace traind
