#include "common/modelspec/hf_config.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/modelspec/config_check.h"
#include "common/modelspec/json_object.h"
#include "common/modelspec/model_error.h"
#include "common/status/errors.h"

namespace traind {
namespace {

using nlohmann::json;

// Reads one config and gathers what is wrong with it, so that a user sees everything at once.
class HfConfigReader {
 public:
  explicit HfConfigReader(const json& values) : values_(values) {}

  ModelConfig Read() {
    ReadArchitecture();
    if (!problems_.empty()) return config_;  // Another family's fields mean other things.
    ReadSizes();
    ReadRope();
    ReadTokenIds();
    ReadUnsupported();
    for (std::string& problem : CheckModelConfig(config_)) problems_.push_back(std::move(problem));
    return config_;
  }

  const std::vector<std::string>& problems() const { return problems_; }

 private:
  template <typename... Parts>
  void Problem(const Parts&... parts) {
    problems_.push_back(absl::StrCat(parts...));
  }

  // The value of `key`; null if it is missing.
  const json& Get(const char* key) const { return GetFrom(values_, key); }

  static const json& GetFrom(const json& object, const char* key) {
    static const json* const kNull = new json;
    const auto found = object.find(key);
    return found == object.end() ? *kNull : *found;
  }

  bool is_mistral() const { return config_.model_type == "mistral"; }

  int64_t Int(const char* key, int64_t fallback) {
    const json& value = Get(key);
    if (value.is_null()) return fallback;
    if (value.is_number_integer()) return value.get<int64_t>();
    Problem(key, " is ", JsonText(value), ", not an integer");
    return fallback;
  }

  int64_t RequiredInt(const char* key) {
    if (Get(key).is_null()) Problem(key, " is missing");
    return Int(key, 1);  // 1 keeps the later checks from complaining about the same field.
  }

  double Number(const json& object, const char* key, double fallback) {
    const json& value = GetFrom(object, key);
    if (value.is_null()) return fallback;
    if (value.is_number()) return value.get<double>();
    Problem(key, " is ", JsonText(value), ", not a number");
    return fallback;
  }

  bool Bool(const char* key) {
    const json& value = Get(key);
    if (value.is_null()) return false;
    if (value.is_boolean()) return value.get<bool>();
    Problem(key, " is ", JsonText(value), ", not true or false");
    return false;
  }

  std::string Text(const json& object, const char* key) {
    const json& value = GetFrom(object, key);
    if (value.is_null()) return "";
    if (value.is_string()) return value.get<std::string>();
    Problem(key, " is ", JsonText(value), ", not a string");
    return "";
  }

  void ReadArchitecture() {
    config_.model_type = Text(values_, "model_type");
    const std::string expected = config_.model_type == "llama"     ? "LlamaForCausalLM"
                                 : config_.model_type == "mistral" ? "MistralForCausalLM"
                                                                   : "";
    const json& listed = Get("architectures");
    std::string architecture = expected;
    if (listed.is_array() && !listed.empty() && listed[0].is_string()) {
      architecture = listed[0].get<std::string>();
    }
    if (!expected.empty() && architecture == expected) return;
    Problem("architecture ", architecture.empty() ? "(none given)" : architecture,
            " with model_type \"", config_.model_type,
            "\" is not supported; supported are LlamaForCausalLM with model_type \"llama\" and "
            "MistralForCausalLM with \"mistral\"");
  }

  void ReadSizes() {
    config_.dtype = Text(values_, Get("dtype").is_null() ? "torch_dtype" : "dtype");
    config_.vocab_size = RequiredInt("vocab_size");
    config_.hidden_size = RequiredInt("hidden_size");
    config_.intermediate_size = RequiredInt("intermediate_size");
    config_.num_hidden_layers = RequiredInt("num_hidden_layers");
    config_.num_attention_heads = RequiredInt("num_attention_heads");
    const bool mistral_default = is_mistral() && !values_.contains("num_key_value_heads");
    config_.num_key_value_heads =
        Int("num_key_value_heads", mistral_default ? 8 : config_.num_attention_heads);
    config_.max_position_embeddings =
        Int("max_position_embeddings", is_mistral() ? 4096 * 32 : 2048);
    config_.rms_norm_eps = Number(values_, "rms_norm_eps", 1e-6);
    config_.tie_word_embeddings = Bool("tie_word_embeddings");
    ReadHeadDim();
  }

  void ReadHeadDim() {
    config_.head_dim = Int("head_dim", 0);
    if (!Get("head_dim").is_null() || config_.num_attention_heads <= 0) return;
    config_.head_dim = config_.hidden_size / config_.num_attention_heads;
    if (config_.hidden_size % config_.num_attention_heads != 0) {
      Problem("num_attention_heads ", config_.num_attention_heads, " does not divide hidden_size ",
              config_.hidden_size, ", and head_dim is not given");
    }
  }

  // Transformers 4: rope_theta and rope_scaling. Transformers 5: rope_parameters with both.
  void ReadRope() {
    config_.rope_theta = 10000;
    const json& scaling = Get("rope_scaling");
    const json& parameters = Get("rope_parameters");
    const double top_level = Number(values_, "rope_theta", 0);
    if (top_level != 0) config_.rope_theta = top_level;
    CheckRopeType("rope_scaling", scaling);
    CheckRopeType("rope_parameters", parameters);
    if (parameters.is_object()) {
      const double nested = Number(parameters, "rope_theta", config_.rope_theta);
      if (top_level != 0 && nested != top_level) {
        Problem("rope_theta is ", top_level, ", but rope_parameters.rope_theta is ", nested);
      }
      config_.rope_theta = nested;
    }
    CheckPartialRotary(values_);
    if (parameters.is_object()) CheckPartialRotary(parameters);
  }

  void CheckRopeType(const char* key, const json& block) {
    if (block.is_null()) return;
    if (!block.is_object()) return Problem(key, " is ", JsonText(block), ", not an object");
    for (const auto& [layer_type, value] : block.items()) {
      if (value.is_object()) {
        return Problem(key, " has settings per layer type (\"", layer_type,
                       "\"), which is not supported");
      }
    }
    const bool has_type = block.contains("rope_type") || block.contains("type");
    // A block of scaling settings without a type must not run as unscaled.
    if (!has_type && block.contains("factor"))
      return Problem(key, " has a factor but no rope_type");
    if (!has_type) return;
    const std::string type = Text(block, block.contains("rope_type") ? "rope_type" : "type");
    if (type != "default") {
      Problem(key, " has rope_type \"", type,
              "\", which is not supported; supported is \"default\"");
    }
  }

  void CheckPartialRotary(const json& object) {
    const double factor = Number(object, "partial_rotary_factor", 1);
    if (factor != 1) Problem("partial_rotary_factor ", factor, " is not supported");
  }

  void ReadTokenIds() {
    config_.bos_token_id = TokenId("bos_token_id", Get("bos_token_id"), 1);
    config_.pad_token_id = TokenId("pad_token_id", Get("pad_token_id"), -1);
    const json& eos = Get("eos_token_id");
    if (!eos.is_array()) return AddEosTokenId(eos);
    for (const json& id : eos) AddEosTokenId(id);
  }

  void AddEosTokenId(const json& value) {
    const int32_t id = TokenId("eos_token_id", value, 2);
    if (id >= 0) config_.eos_token_ids.push_back(id);
  }

  // `fallback` if the key is not in the file; -1 for null and for negative ids, which mean none.
  int32_t TokenId(const char* key, const json& value, int32_t fallback) {
    if (value.is_null()) return values_.contains(key) ? -1 : fallback;
    if (!value.is_number_integer() || value.get<int64_t>() >= config_.vocab_size) {
      Problem(key, " is ", JsonText(value), ", not an id below vocab_size ", config_.vocab_size);
      return -1;
    }
    return value.get<int64_t>() < 0 ? -1 : static_cast<int32_t>(value.get<int64_t>());
  }

  void ReadUnsupported() {
    for (const char* key : {"attention_bias", "mlp_bias"}) {
      if (Bool(key)) Problem(key, " true is not supported");
    }
    const std::string activation = Text(values_, "hidden_act");
    if (!activation.empty() && activation != "silu") {
      Problem("hidden_act \"", activation, "\" is not supported; supported is \"silu\"");
    }
    const double dropout = Number(values_, "attention_dropout", 0);
    if (dropout != 0) Problem("attention_dropout ", dropout, " is not supported");
    if (!Get("quantization_config").is_null()) {
      Problem(
          "quantization_config: the weights are quantised in a way that is not supported; use "
          "the unquantised model or a GGUF file");
    }
    ReadSlidingWindow();
  }

  // Without the key Mistral has a window of 4096; null means none.
  void ReadSlidingWindow() {
    if (!is_mistral()) return;
    const bool none = values_.contains("sliding_window") && Get("sliding_window").is_null();
    const int64_t window = none ? config_.max_position_embeddings : Int("sliding_window", 4096);
    if (window < config_.max_position_embeddings) {
      Problem("sliding_window ", window, " below max_position_embeddings ",
              config_.max_position_embeddings, " is not supported");
    }
  }

  const json& values_;
  ModelConfig config_;
  std::vector<std::string> problems_;
};

}  // namespace

absl::StatusOr<ModelConfig> ParseHfConfig(absl::string_view json_text, const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(const json values, ParseJsonObject(json_text, path));
  HfConfigReader reader(values);
  ModelConfig config = reader.Read();
  if (reader.problems().empty()) return config;
  return ModelInvalid(path, absl::StrJoin(reader.problems(), "; "));
}

}  // namespace traind
