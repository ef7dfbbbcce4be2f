#include "worker/model/gguf_weights.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/modelspec/gguf_config.h"
#include "common/modelspec/gguf_file.h"
#include "common/modelspec/model_error.h"
#include "common/status/errors.h"
#include "worker/model/weight_table.h"

namespace traind {
namespace {

// GGUF's names (without `.weight`) of the tensors outside of layers, then of a layer's.
const std::map<absl::string_view, absl::string_view>& OuterNames() {
  static const auto* const kNames = new std::map<absl::string_view, absl::string_view>{
      {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
  return *kNames;
}

const std::map<absl::string_view, absl::string_view>& LayerNames() {
  static const auto* const kNames = new std::map<absl::string_view, absl::string_view>{
      {"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
      {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
      {"attn_output", "self_attn.o_proj"}, {"ffn_norm", "post_attention_layernorm"},
      {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  return *kNames;
}

// The Hugging Face name of a GGUF tensor; the same name if it is not one of a Llama's.
std::string HfName(const std::string& name) {
  const std::vector<std::string> parts = absl::StrSplit(name, '.');
  if (parts.size() == 2 && parts[1] == "weight") {
    const auto found = OuterNames().find(parts[0]);
    if (found != OuterNames().end()) return absl::StrCat(found->second, ".weight");
  }
  if (parts.size() == 4 && parts[0] == "blk" && parts[3] == "weight") {
    const auto found = LayerNames().find(parts[2]);
    if (found != LayerNames().end()) {
      return absl::StrCat("model.layers.", parts[1], ".", found->second, ".weight");
    }
  }
  return name;
}

std::optional<NumberFormat> FormatOf(uint32_t type) {
  switch (static_cast<GgmlType>(type)) {
    case GgmlType::kF32:
      return NumberFormat::kFloat32;
    case GgmlType::kF16:
      return NumberFormat::kFloat16;
    case GgmlType::kBF16:
      return NumberFormat::kBfloat16;
    case GgmlType::kQ8_0:
      return NumberFormat::kQ8_0;
    case GgmlType::kQ4_0:
      return NumberFormat::kQ4_0;
    case GgmlType::kQ4_1:
      return NumberFormat::kQ4_1;
  }
  return std::nullopt;  // A type of ggml that traind does not read.
}

// Converters to GGUF permute the rows of Llama's q and k for ggml's interleaved RoPE.
int64_t InterleavedHeads(absl::string_view name, const ModelConfig& config) {
  if (absl::EndsWith(name, ".self_attn.q_proj.weight")) return config.num_attention_heads;
  if (absl::EndsWith(name, ".self_attn.k_proj.weight")) return config.num_key_value_heads;
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<WeightSource>> OpenGgufWeights(const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(GgufFile opened, GgufFile::Open(path));
  const auto file = std::make_shared<const GgufFile>(std::move(opened));
  TRAIND_ASSIGN_OR_RETURN(ModelConfig config, ParseGgufConfig(file->header()));
  std::map<std::string, StoredTensor> tensors;
  for (const GgufTensor& tensor : file->header().tensors()) {
    const std::string name = HfName(tensor.name);
    StoredTensor stored{
        tensor.shape, FormatOf(tensor.type), std::string(FindGgmlType(tensor.type)->name),
        tensor.name,  tensor.data,           InterleavedHeads(name, config)};
    if (!tensors.emplace(name, std::move(stored)).second) {
      return ModelInvalid(path, absl::StrCat("two tensors stand for ", name));
    }
  }
  return WeightTable::Create(path, std::move(config), std::move(tensors), file);
}

}  // namespace traind
