#include "worker/lora/adapter_layout.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/errors.h"

namespace traind {
namespace {

constexpr absl::string_view kTargetField = "lora.target_modules";

// Modules that PEFT could adapt and traind does not.
constexpr absl::string_view kHead = "lm_head";
constexpr absl::string_view kEmbeddings = "model.embed_tokens";

bool EntryHits(absl::string_view entry, absl::string_view name) {
  return name == entry || absl::EndsWith(name, absl::StrCat(".", entry));
}

bool IsAllLinear(const LoraOptions& options) {
  return options.target_modules.size() == 1 &&
         absl::EqualsIgnoreCase(options.target_modules[0], "all-linear");
}

std::vector<std::string> TargetsOf(const LoraOptions& options) {
  if (options.target_modules.empty()) return {"q_proj", "v_proj"};
  return options.target_modules;
}

using NamePredicate = std::function<bool(const std::string&)>;

absl::StatusOr<NamePredicate> MakePredicate(const LoraOptions& options) {
  if (IsAllLinear(options))
    return NamePredicate(
        [](const std::string& name) { return name != kHead && name != kEmbeddings; });
  const std::vector<std::string> targets = TargetsOf(options);
  if (!options.target_is_regex) {
    return NamePredicate([targets](const std::string& name) {
      return std::any_of(targets.begin(), targets.end(),
                         [&](const std::string& target) { return EntryHits(target, name); });
    });
  }
  if (targets.size() != 1) {
    return FieldErrors({{std::string(kTargetField), "must be one regular expression"}});
  }
  const auto pattern = std::make_shared<const RE2>(targets[0], RE2::Quiet);
  if (!pattern->ok()) {
    return FieldErrors({{std::string(kTargetField),
                         absl::StrCat("is not a regular expression: ", pattern->error(),
                                      " (look-ahead and back-references are not supported)")}});
  }
  return NamePredicate(
      [pattern](const std::string& name) { return RE2::FullMatch(name, *pattern); });
}

absl::Status CheckNumbers(const LoraOptions& options) {
  std::vector<FieldViolation> violations;
  if (options.r < 1) {
    violations.push_back({"lora.r", absl::StrCat("is ", options.r, "; must be at least 1")});
  }
  if (!std::isfinite(options.lora_alpha) || options.lora_alpha <= 0) {
    violations.push_back({"lora.lora_alpha",
                          absl::StrCat("is ", options.lora_alpha, "; must be a positive number")});
  }
  if (!(options.lora_dropout >= 0 && options.lora_dropout < 1)) {
    violations.push_back(
        {"lora.lora_dropout", absl::StrCat("is ", options.lora_dropout, "; must be in [0, 1)")});
  }
  return violations.empty() ? absl::OkStatus() : FieldErrors(violations);
}

// The last parts of the names, which is what users write: `q_proj`, `up_proj` …
std::vector<std::string> Suffixes(const std::vector<LinearShape>& layers) {
  std::vector<std::string> suffixes;
  for (const LinearShape& layer : layers) {
    const std::string suffix = layer.name.substr(layer.name.rfind('.') + 1);
    if (std::find(suffixes.begin(), suffixes.end(), suffix) == suffixes.end()) {
      suffixes.push_back(suffix);
    }
  }
  return suffixes;
}

absl::Status NothingHit(const LoraOptions& options, const std::vector<LinearShape>& layers) {
  const std::string wanted = absl::StrJoin(TargetsOf(options), ", ");
  const std::string existing = absl::StrJoin(Suffixes(layers), ", ");
  return Error(
      absl::StatusCode::kInvalidArgument, Reason::kTargetModulesNotFound,
      absl::StrCat("No module of the base model matches lora.target_modules \"", wanted,
                   "\". Its linear layers are ", existing, " (full names such as ",
                   layers.empty() ? "none" : layers.front().name, "); or use \"all-linear\"."),
      {{"target_modules", wanted}, {"available", existing}});
}

// Gives every hit layer its place: first the A's of an input group, then its B's.
void PlaceGroup(std::vector<LoraModule>& group, AdapterLayout& layout) {
  const int64_t r = layout.options.r;
  for (LoraModule& module : group) {
    module.a_offset = layout.size;
    layout.size += r * module.in_features;
  }
  for (LoraModule& module : group) {
    module.b_offset = layout.size;
    layout.size += module.out_features * r;
  }
  layout.modules.insert(layout.modules.end(), group.begin(), group.end());
  group.clear();
}

std::vector<std::string> UnusedTargets(const LoraOptions& options,
                                       const std::vector<LinearShape>& layers) {
  std::vector<std::string> unused;
  if (options.target_is_regex || IsAllLinear(options)) return unused;
  for (const std::string& target : TargetsOf(options)) {
    const bool used = std::any_of(layers.begin(), layers.end(), [&](const LinearShape& layer) {
      return EntryHits(target, layer.name);
    });
    if (!used) unused.push_back(target);
  }
  return unused;
}

}  // namespace

std::vector<LinearShape> LinearLayersOf(const ModelConfig& config) {
  const int64_t hidden = config.hidden_size;
  const int64_t inner = config.intermediate_size;
  std::vector<LinearShape> layers;
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    const std::string prefix = absl::StrCat("model.layers.", i, ".");
    const int64_t group = 4 * i;
    layers.push_back({prefix + "self_attn.q_proj", hidden, config.query_size(), group});
    layers.push_back({prefix + "self_attn.k_proj", hidden, config.key_value_size(), group});
    layers.push_back({prefix + "self_attn.v_proj", hidden, config.key_value_size(), group});
    layers.push_back({prefix + "self_attn.o_proj", config.query_size(), hidden, group + 1});
    layers.push_back({prefix + "mlp.gate_proj", hidden, inner, group + 2});
    layers.push_back({prefix + "mlp.up_proj", hidden, inner, group + 2});
    layers.push_back({prefix + "mlp.down_proj", inner, hidden, group + 3});
  }
  return layers;
}

absl::StatusOr<AdapterLayout> BuildAdapterLayout(const ModelConfig& config,
                                                 const LoraOptions& options) {
  TRAIND_RETURN_IF_ERROR(CheckNumbers(options));
  TRAIND_ASSIGN_OR_RETURN(const NamePredicate hits, MakePredicate(options));
  for (const absl::string_view fixed : {kHead, kEmbeddings}) {
    if (!hits(std::string(fixed))) continue;
    return FieldErrors(
        {{std::string(kTargetField),
          absl::StrCat("matches ", fixed, ", which cannot be adapted; leave it out")}});
  }
  const std::vector<LinearShape> layers = LinearLayersOf(config);
  AdapterLayout layout;
  layout.options = options;
  std::vector<LoraModule> group;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i > 0 && layers[i].input_group != layers[i - 1].input_group) PlaceGroup(group, layout);
    if (!hits(layers[i].name)) continue;
    group.push_back({layers[i].name, layers[i].in_features, layers[i].out_features});
  }
  PlaceGroup(group, layout);
  if (layout.modules.empty()) return NothingHit(options, layers);
  layout.unused_targets = UnusedTargets(options, layers);
  return layout;
}

namespace {

// Uniform in [-bound, bound) from 24 random bits: the standard's distributions may differ between
// libraries, this does not.
void FillUniform(absl::Span<float> values, double bound, std::mt19937_64& generator) {
  for (float& value : values) {
    const double unit = static_cast<double>(generator() >> 40) * 0x1p-24;
    value = static_cast<float>((2 * unit - 1) * bound);
  }
}

}  // namespace

void InitializeLora(Adapter& adapter) {
  const AdapterLayout& layout = adapter.layout();
  const int64_t r = layout.options.r;
  std::mt19937_64 generator(layout.options.seed);
  const auto part = [&](int64_t offset, int64_t size) {
    return adapter.parameters().subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
  };
  for (const LoraModule& module : layout.modules) {
    const absl::Span<float> b = part(module.b_offset, module.out_features * r);
    FillUniform(part(module.a_offset, r * module.in_features),
                1 / std::sqrt(static_cast<double>(module.in_features)), generator);
    if (layout.options.init_lora_weights) {
      std::fill(b.begin(), b.end(), 0.0f);
    } else {
      FillUniform(b, 1 / std::sqrt(static_cast<double>(r)), generator);
    }
  }
}

}  // namespace traind
