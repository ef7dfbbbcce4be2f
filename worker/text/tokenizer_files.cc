#include "worker/text/tokenizer_files.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/status/errors.h"
#include "nlohmann/json.hpp"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kTokenizerFile[] = "/tokenizer.json";
constexpr char kConfigFile[] = "/tokenizer_config.json";
constexpr char kTemplateFile[] = "/chat_template.jinja";
// Transformers writes this for tokenizers without a limit.
constexpr double kNoMaxLength = 1e15;

absl::Status ModelInvalid(absl::string_view file, absl::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, Reason::kModelInvalid,
               absl::StrCat(file, " ", why), {{"file", file}});
}

absl::StatusOr<Json> ReadConfig(const std::string& file) {
  if (!FileExists(file)) return Json::object();
  TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, Reason::kModelInvalid));
  Json config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return ModelInvalid(file, "is not a JSON object");
  return config;
}

// A token as text or as {"content": …}; nothing for null.
absl::StatusOr<SpecialToken> ReadSpecialToken(const Json& config, const char* key,
                                              const std::string& file, const Tokenizer& tokenizer) {
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return SpecialToken();
  const Json& value = found->is_object() ? found->value("content", Json()) : *found;
  if (!value.is_string()) return ModelInvalid(file, absl::StrCat("has no text as ", key));
  const auto text = value.get<std::string>();
  const std::optional<int32_t> id = tokenizer.TokenToId(text);
  if (!id.has_value()) {
    return ModelInvalid(
        file, absl::StrCat("names ", key, " '", text, "', which the tokenizer does not have"));
  }
  return SpecialToken{*id, text};
}

// tokenizer_config.json decides; without its word, whatever the post-processor does.
absl::StatusOr<bool> AddsBos(const Json& config, const TextModel& model) {
  const auto found = config.find("add_bos_token");
  if (found != config.end() && found->is_boolean()) return found->get<bool>();
  if (model.bos.id < 0) return false;
  TRAIND_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, model.tokenizer->Encode("a", true));
  return !ids.empty() && ids.front() == model.bos.id;
}

// The template of tokenizer_config.json: a text, or the one named `default` in a list.
absl::StatusOr<std::optional<std::string>> ConfigTemplate(const Json& config,
                                                          const std::string& file) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (found->is_array()) {
    for (const Json& entry : *found) {
      if (entry.is_object() && entry.value("name", Json()) == "default" &&
          entry.value("template", Json()).is_string()) {
        return entry["template"].get<std::string>();
      }
    }
  }
  return ModelInvalid(file, "has a chat_template that is neither text nor a list with `default`");
}

absl::Status ReadChatTemplate(const Json& config, TextModel& model) {
  const std::string file = model.path + kTemplateFile;
  if (FileExists(file)) {
    TRAIND_ASSIGN_OR_RETURN(const std::string source, ReadFile(file, Reason::kModelInvalid));
    return SetChatTemplate(source, file, model);
  }
  const std::string config_file = model.path + kConfigFile;
  TRAIND_ASSIGN_OR_RETURN(const std::optional<std::string> source,
                          ConfigTemplate(config, config_file));
  if (!source.has_value()) return absl::OkStatus();
  return SetChatTemplate(*source, config_file, model);
}

absl::Status ReadSpecialTokens(const Json& config, const std::string& file, TextModel& model) {
  const Tokenizer& tokenizer = *model.tokenizer;
  TRAIND_ASSIGN_OR_RETURN(model.bos, ReadSpecialToken(config, "bos_token", file, tokenizer));
  TRAIND_ASSIGN_OR_RETURN(model.eos, ReadSpecialToken(config, "eos_token", file, tokenizer));
  TRAIND_ASSIGN_OR_RETURN(model.pad, ReadSpecialToken(config, "pad_token", file, tokenizer));
  TRAIND_ASSIGN_OR_RETURN(model.unk, ReadSpecialToken(config, "unk_token", file, tokenizer));
  return absl::OkStatus();
}

Json ConfigOf(const TextModel& model) {
  Json config = {{"add_bos_token", model.add_bos}};
  for (const auto& [key, token] : {std::pair{"bos_token", &model.bos},
                                   {"eos_token", &model.eos},
                                   {"pad_token", &model.pad},
                                   {"unk_token", &model.unk}}) {
    if (token->id >= 0) config[key] = token->text;
  }
  config["clean_up_tokenization_spaces"] = false;
  if (model.model_max_length > 0) config["model_max_length"] = model.model_max_length;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  return config;
}

}  // namespace

absl::StatusOr<TextModel> LoadTextModelFromFolder(const std::string& directory) {
  const std::string tokenizer_file = directory + kTokenizerFile;
  if (!FileExists(tokenizer_file)) {
    return Error(absl::StatusCode::kNotFound, Reason::kModelInvalid,
                 absl::StrCat(directory,
                              " has no tokenizer.json; a folder of a fast Hugging Face "
                              "tokenizer is needed"),
                 {{"file", tokenizer_file}});
  }
  TextModel model;
  model.path = directory;
  TRAIND_ASSIGN_OR_RETURN(const std::string json, ReadFile(tokenizer_file, Reason::kModelInvalid));
  TRAIND_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::FromJson(json, tokenizer_file));
  const std::string config_file = directory + kConfigFile;
  TRAIND_ASSIGN_OR_RETURN(const Json config, ReadConfig(config_file));
  TRAIND_RETURN_IF_ERROR(ReadSpecialTokens(config, config_file, model));
  TRAIND_ASSIGN_OR_RETURN(model.add_bos, AddsBos(config, model));
  const Json max_length = config.value("model_max_length", Json());
  if (max_length.is_number() && max_length > 0 && max_length < kNoMaxLength) {
    model.model_max_length = max_length.get<int64_t>();
  }
  TRAIND_RETURN_IF_ERROR(ReadChatTemplate(config, model));
  return model;
}

absl::Status WriteTokenizerFiles(const TextModel& model, const std::string& directory) {
  TRAIND_ASSIGN_OR_RETURN(const std::string json, model.tokenizer->ToJson());
  TRAIND_RETURN_IF_ERROR(WriteFileAtomically(directory + kTokenizerFile, json));
  const std::string config = ConfigOf(model).dump(2, ' ', false, Json::error_handler_t::replace);
  TRAIND_RETURN_IF_ERROR(WriteFileAtomically(directory + kConfigFile, config + "\n"));
  if (model.chat_template == nullptr) return absl::OkStatus();
  return WriteFileAtomically(directory + kTemplateFile, model.chat_template->source());
}

}  // namespace traind
