#include "common/modelspec/config_check.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace traind {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 1000;

}  // namespace

std::vector<std::string> CheckModelConfig(const ModelConfig& config) {
  std::vector<std::string> problems;
  const auto check_range = [&](const char* name, int64_t value, int64_t most) {
    if (value >= 1 && value <= most) return;
    problems.push_back(absl::StrCat(name, " is ", value, ", not in [1, ", most, "]"));
  };
  check_range("vocab_size", config.vocab_size, kMaxSize);
  check_range("hidden_size", config.hidden_size, kMaxSize);
  check_range("intermediate_size", config.intermediate_size, kMaxSize);
  check_range("num_hidden_layers", config.num_hidden_layers, kMaxLayers);
  check_range("num_attention_heads", config.num_attention_heads, kMaxSize);
  check_range("num_key_value_heads", config.num_key_value_heads, kMaxSize);
  check_range("head_dim", config.head_dim, kMaxSize);
  check_range("max_position_embeddings", config.max_position_embeddings, int64_t{1} << 31);
  if (!problems.empty()) return problems;
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    problems.push_back(absl::StrCat("num_key_value_heads ", config.num_key_value_heads,
                                    " does not divide num_attention_heads ",
                                    config.num_attention_heads));
  }
  if (config.head_dim % 2 != 0) {
    problems.push_back(absl::StrCat("head_dim ", config.head_dim, " is odd"));
  }
  if (config.query_size() > kMaxSize) {
    problems.push_back("num_attention_heads x head_dim is too large");
  }
  if (!(config.rms_norm_eps > 0) || !(config.rms_norm_eps < 1)) {
    problems.push_back(absl::StrCat("rms_norm_eps is ", config.rms_norm_eps, ", not in (0, 1)"));
  }
  if (!(config.rope_theta >= 1) || !std::isfinite(config.rope_theta)) {
    problems.push_back(absl::StrCat("rope_theta is ", config.rope_theta, ", not at least 1"));
  }
  return problems;
}

}  // namespace traind
