#include "common/jobspec/known_fields.h"

namespace traind::jobspec {
namespace {

bool IsRatio(const Json& value) {
  return value.is_number() && value.get<double>() > 0 && value.get<double>() < 1;
}
bool IsBool(const Json& value) { return value.is_boolean(); }
bool IsTrue(const Json& value) { return value.is_boolean() && value.get<bool>(); }
Json BoolAsWord(const Json& value) { return value.get<bool>() ? "true" : "false"; }
Json LossOn(const Json& value) { return value.get<bool>() ? "completion" : "all"; }

constexpr Alias kAliases[] = {
    {"BaseModel", "torch_dtype", "spec.base_model.dtype", nullptr, nullptr},
    {"Dataset", "max_seq_length", "spec.dataset.max_length", nullptr, nullptr},
    {"TrainingArguments", "max_length", "spec.dataset.max_length", nullptr, nullptr},
    {"TrainingArguments", "max_seq_length", "spec.dataset.max_length", nullptr, nullptr},
    {"TrainingArguments", "evaluation_strategy", "spec.training.eval_strategy", nullptr, nullptr},
    {"TrainingArguments", "warmup_steps", "spec.training.warmup_ratio", IsRatio, nullptr},
    {"TrainingArguments", "bf16", "spec.training.bf16", IsBool, BoolAsWord},
    {"TrainingArguments", "completion_only_loss", "spec.dataset.loss_on", IsBool, LossOn},
    {"TrainingArguments", "assistant_only_loss", "spec.dataset.loss_on", IsTrue, LossOn},
};

// Words that people write for fields whose names look different.
struct Synonym {
  absl::string_view message;
  absl::string_view name;
  absl::string_view meant;
};

constexpr Synonym kSynonyms[] = {
    {"Job", "model", "base_model"},
    {"Job", "data", "dataset"},
    {"Job", "title", "display_name"},
    {"TrainingSpec", "model", "base_model"},
    {"TrainingSpec", "data", "dataset"},
    {"LoraConfig", "alpha", "lora_alpha"},
    {"LoraConfig", "dropout", "lora_dropout"},
    {"LoraConfig", "rank", "r"},
    {"TrainingArguments", "batch_size", "per_device_train_batch_size"},
    {"TrainingArguments", "epochs", "num_train_epochs"},
    {"TrainingArguments", "lr", "learning_rate"},
    {"TrainingArguments", "steps", "max_steps"},
};

constexpr absl::string_view kPrecision = "numbers of this kind are not supported yet; leave it out";
constexpr absl::string_view kSecret = "secrets are never part of a job";
constexpr absl::string_view kInit = "other ways to initialise the adapter are not supported yet";
constexpr absl::string_view kLayers =
    "name the modules with a regular expression in `target_modules` instead";
constexpr absl::string_view kSharding = "training over several devices is not supported yet";
constexpr absl::string_view kHub =
    "nothing is sent to a hub; take the adapter with "
    "`trainctl checkpoint download`";
constexpr absl::string_view kCheckpointing =
    "recomputing activations is not supported yet; lower `per_device_train_batch_size` and raise "
    "`gradient_accumulation_steps` to save memory";
constexpr absl::string_view kPacking =
    "rows are never padded and never mixed, so there is nothing to pack";
constexpr absl::string_view kBest =
    "the newest adapter is kept; choosing the best checkpoint is "
    "not supported yet";
constexpr absl::string_view kQuantized = "quantised base models are read from GGUF files";
constexpr absl::string_view kReport =
    "reports go to /metrics and to `trainctl job watch`; other trackers are not supported yet";
constexpr absl::string_view kNotYet = "it is not supported yet";
constexpr absl::string_view kAny = "*";
constexpr absl::string_view kOff = "[false]";
constexpr absl::string_view kOnlyNull = "[]";

constexpr UnsupportedField kUnsupported[] = {
    {"Job", "queue", "[\"default\"]", "there is one queue, `default`"},
    {"Job", "token", kOnlyNull, kSecret},
    {"Job", "hf_token", kOnlyNull, kSecret},
    {"Job", "api_key", kOnlyNull, kSecret},
    {"Job", "secrets", "[[], {}]", kSecret},
    {"Job", "env", "[[], {}]", "a job has no environment variables"},
    {"Resources", "nodes", "[1]", kSharding},
    {"Resources", "preemptible", kOff, "pre-emption is not supported yet"},
    {"Resources", "gpus", kOnlyNull, "set `device_type` to \"cuda\" and `devices` to the number"},

    {"BaseModel", "quantization", R"([{"kind": "none"}, {}])", kQuantized},
    {"BaseModel", "quantization_config", kOnlyNull, kQuantized},
    {"BaseModel", "load_in_4bit", kOff, kQuantized},
    {"BaseModel", "load_in_8bit", kOff, kQuantized},
    {"BaseModel", "trust_remote_code", kOff, "no code of a model is ever run"},
    {"BaseModel", "device_map", "[\"auto\"]", "`resources` says what a job gets"},
    {"BaseModel", "attn_implementation", kAny, ""},
    {"BaseModel", "name", kOnlyNull, "name a folder or a GGUF file in `path`"},
    {"BaseModel", "revision", kOnlyNull, "models are read from local files"},
    {"BaseModel", "token", kOnlyNull, kSecret},

    {"Dataset", "packing", "[false, \"none\"]", kPacking},
    {"Dataset", "streaming", kOff, "rows are read before the first update"},
    {"Dataset", "dataloader_num_workers", kAny, ""},
    {"DataFile", "weight", "[1, 1.0]", "mixing files by weight is not supported yet"},
    {"DataFile", "split", kOnlyNull, "write the rows of each split into a file of its own"},

    {"LoraConfig", "use_dora", kOff, "DoRA is not supported yet"},
    {"LoraConfig", "use_qalora", kOff, "QALoRA is not supported yet"},
    {"LoraConfig", "qalora_group_size", kAny, ""},
    {"LoraConfig", "lora_bias", kOff, "biases are not trained yet"},
    {"LoraConfig", "modules_to_save", "[[]]", "training whole modules is not supported yet"},
    {"LoraConfig", "trainable_token_indices", "[[], {}]", kNotYet},
    {"LoraConfig", "layers_to_transform", "[[]]", kLayers},
    {"LoraConfig", "layers_pattern", "[[], \"\"]", kLayers},
    {"LoraConfig", "exclude_modules", "[[], \"\"]", kLayers},
    {"LoraConfig", "target_parameters", "[[]]", "only linear modules can have an adapter"},
    {"LoraConfig", "layer_replication", "[[]]", kNotYet},
    {"LoraConfig", "rank_pattern", "[{}]", "one rank for all modules: set `r`"},
    {"LoraConfig", "alpha_pattern", "[{}]", "one scale for all modules: set `lora_alpha`"},
    {"LoraConfig", "loftq_config", "[{}]", kInit},
    {"LoraConfig", "eva_config", "[{}]", kInit},
    {"LoraConfig", "corda_config", "[{}]", kInit},
    {"LoraConfig", "arrow_config", "[{}]", kNotYet},
    {"LoraConfig", "megatron_config", "[{}]", kNotYet},
    {"LoraConfig", "megatron_core", "[\"megatron.core\"]", kNotYet},
    {"LoraConfig", "fan_in_fan_out", kOff, "only linear modules of shape [out, in] are supported"},
    {"LoraConfig", "ensure_weight_tying", kOff, kNotYet},
    {"LoraConfig", "inference_mode", kAny, ""},
    {"LoraConfig", "peft_type", "[\"LORA\"]", "the adapter is LoRA"},
    {"LoraConfig", "task_type", "[\"CAUSAL_LM\"]", "the task is CAUSAL_LM; set `task`"},
    {"LoraConfig", "base_model_name_or_path", kAny, ""},
    {"LoraConfig", "peft_version", kAny, ""},
    {"LoraConfig", "auto_mapping", "[{}]", kNotYet},
    {"LoraConfig", "revision", kAny, ""},
    {"LoraConfig", "runtime_config", kAny, ""},

    {"TrainingArguments", "fp16", kOff, kPrecision},
    {"TrainingArguments", "fp16_full_eval", kOff, kPrecision},
    {"TrainingArguments", "bf16_full_eval", kOff, kPrecision},
    {"TrainingArguments", "fp16_opt_level", kAny, ""},
    {"TrainingArguments", "half_precision_backend", "[\"auto\"]", kPrecision},
    {"TrainingArguments", "tf32", kOff, kPrecision},
    {"TrainingArguments", "load_best_model_at_end", kOff, kBest},
    {"TrainingArguments", "metric_for_best_model", "[\"loss\", \"eval_loss\"]", kBest},
    {"TrainingArguments", "greater_is_better", kOff, kBest},
    {"TrainingArguments", "packing", "[false, \"none\"]", kPacking},
    {"TrainingArguments", "eval_packing", kOff, kPacking},
    {"TrainingArguments", "packing_strategy", kAny, ""},
    {"TrainingArguments", "padding_free", kAny, ""},
    {"TrainingArguments", "pad_to_multiple_of", kAny, ""},
    {"TrainingArguments", "group_by_length", kOff, "rows are never padded: grouping saves nothing"},
    {"TrainingArguments", "assistant_only_loss", kOff,
     "it must be true or false; see also `dataset.loss_on`"},
    {"TrainingArguments", "completion_only_loss", kOnlyNull,
     "it must be true or false; see also `dataset.loss_on`"},
    {"TrainingArguments", "neftune_noise_alpha", "[0, 0.0]", "NEFTune is not supported yet"},
    {"TrainingArguments", "gradient_checkpointing", "[false, \"auto\"]", kCheckpointing},
    {"TrainingArguments", "gradient_checkpointing_kwargs", kAny, ""},
    {"TrainingArguments", "activation_offloading", kOff, kNotYet},
    {"TrainingArguments", "deepspeed", "[{}, \"\"]", kSharding},
    {"TrainingArguments", "fsdp", "[[], {}, \"\", false]", kSharding},
    {"TrainingArguments", "fsdp_config", "[{}]", kSharding},
    {"TrainingArguments", "parallelism_config", "[{}]", kSharding},
    {"TrainingArguments", "local_rank", "[-1, 0]", kSharding},
    {"TrainingArguments", "ddp_backend", kAny, ""},
    {"TrainingArguments", "ddp_find_unused_parameters", kAny, ""},
    {"TrainingArguments", "ddp_timeout", kAny, ""},
    {"TrainingArguments", "no_cuda", kOff, "set `resources.device_type` to \"cpu\""},
    {"TrainingArguments", "use_cpu", kOff, "set `resources.device_type` to \"cpu\""},
    {"TrainingArguments", "push_to_hub", kOff, kHub},
    {"TrainingArguments", "hub_model_id", "[\"\"]", kHub},
    {"TrainingArguments", "hub_token", kOnlyNull, kSecret},
    {"TrainingArguments", "hub_strategy", kAny, ""},
    {"TrainingArguments", "hub_private_repo", kAny, ""},
    {"TrainingArguments", "report_to", "[\"none\", [], [\"none\"]]", kReport},
    {"TrainingArguments", "run_name", kOnlyNull, "set `display_name` at the top of the file"},
    {"TrainingArguments", "output_dir", kOnlyNull, "set `output.path`"},
    {"TrainingArguments", "overwrite_output_dir", kAny, ""},
    {"TrainingArguments", "do_train", "[true]", "every job trains"},
    {"TrainingArguments", "do_eval", kAny, ""},
    {"TrainingArguments", "do_predict", kOff, "write `sample_prompts` instead"},
    {"TrainingArguments", "eval_on_start", kAny, ""},
    {"TrainingArguments", "eval_delay", "[0, 0.0]", kNotYet},
    {"TrainingArguments", "eval_accumulation_steps", kAny, ""},
    {"TrainingArguments", "prediction_loss_only", kAny, ""},
    {"TrainingArguments", "logging_strategy", "[\"steps\"]", "set `logging_steps`"},
    {"TrainingArguments", "logging_first_step", kAny, ""},
    {"TrainingArguments", "logging_dir", kOnlyNull, kReport},
    {"TrainingArguments", "disable_tqdm", kAny, ""},
    {"TrainingArguments", "log_level", kAny, ""},
    {"TrainingArguments", "save_safetensors", "[true]", "adapters are written as safetensors"},
    {"TrainingArguments", "save_only_model", kOff, "a checkpoint always holds all of its state"},
    {"TrainingArguments", "save_on_each_node", kAny, ""},
    {"TrainingArguments", "resume_from_checkpoint", kOff,
     "a job resumes from its own newest checkpoint by itself"},
    {"TrainingArguments", "label_smoothing_factor", "[0, 0.0]", kNotYet},
    {"TrainingArguments", "optim_args", "[\"\"]", "set `adam_beta1`, `adam_beta2`, `adam_epsilon`"},
    {"TrainingArguments", "lr_scheduler_kwargs", "[{}]", kNotYet},
    {"TrainingArguments", "auto_find_batch_size", kOff, kNotYet},
    {"TrainingArguments", "torch_compile", kOff, kNotYet},
    {"TrainingArguments", "use_liger_kernel", kAny, ""},
    {"TrainingArguments", "full_determinism", kAny, ""},
    {"TrainingArguments", "loss_type", "[\"nll\"]", "the loss is the cross-entropy, `nll`"},
    {"TrainingArguments", "average_tokens_across_devices", kAny, ""},
    {"TrainingArguments", "include_tokens_per_second", kAny, ""},
    {"TrainingArguments", "include_num_input_tokens_seen", kAny, ""},
    {"TrainingArguments", "remove_unused_columns", kAny, ""},
    {"TrainingArguments", "dataloader_num_workers", kAny, ""},
    {"TrainingArguments", "dataloader_pin_memory", kAny, ""},
    {"TrainingArguments", "dataloader_prefetch_factor", kAny, ""},
    {"TrainingArguments", "dataloader_persistent_workers", kAny, ""},
    {"TrainingArguments", "dataloader_drop_last", kOff, "the last batch of a pass is always used"},
    {"TrainingArguments", "dataset_text_field", "[\"text\"]", "rows have the field `text`"},
    {"TrainingArguments", "dataset_num_proc", kAny, ""},
    {"TrainingArguments", "dataset_kwargs", "[{}]", kNotYet},
    {"TrainingArguments", "model_init_kwargs", "[{}]", kNotYet},
    {"TrainingArguments", "chat_template_path", "[\"\"]", "the model's own chat template is used"},
    {"TrainingArguments", "eos_token", kOnlyNull, "the model's own tokens are used"},
    {"TrainingArguments", "pad_token", kAny, ""},

    {"Parallelism", "comm_hook", "[\"none\"]", kSharding},
    {"OutputOptions", "merge", kOff, "merging the adapter into the base is not supported yet"},
    {"OutputOptions", "gguf", kOff, "writing GGUF is not supported yet"},
};

}  // namespace

const Alias* FindAlias(absl::string_view message, absl::string_view name, const Json& value) {
  for (const Alias& alias : kAliases) {
    if (alias.message != message || alias.name != name) continue;
    if (alias.applies == nullptr || alias.applies(value)) return &alias;
  }
  return nullptr;
}

absl::string_view FindSynonym(absl::string_view message, absl::string_view name) {
  for (const Synonym& synonym : kSynonyms) {
    if (synonym.message == message && synonym.name == name) return synonym.meant;
  }
  return "";
}

const UnsupportedField* FindUnsupported(absl::string_view message, absl::string_view name) {
  for (const UnsupportedField& field : kUnsupported) {
    if (field.message == message && field.name == name) return &field;
  }
  return nullptr;
}

bool IsHarmless(const UnsupportedField& field, const Json& value) {
  if (value.is_null() || field.harmless == kAny) return true;
  for (const Json& harmless : Json::parse(field.harmless.begin(), field.harmless.end())) {
    if (harmless == value) return true;
  }
  return false;
}

}  // namespace traind::jobspec
