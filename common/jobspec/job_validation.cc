#include "common/jobspec/job_validation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/jobspec/field_checker.h"
#include "common/jobspec/path_check.h"
#include "common/names/resource_name.h"

namespace traind::jobspec {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Interval kNotNegative{0, kInf};
constexpr Interval kPositive{0, kInf, /*low_open=*/true};
constexpr Interval kBelowOne{0, 1, /*low_open=*/false, /*high_open=*/true};
constexpr int64_t kMaxBatch = 65536;
constexpr int kMaxLabels = 64;
constexpr size_t kMaxLabelBytes = 63;
constexpr size_t kMaxDisplayNameBytes = 128;
constexpr int kMaxDataFiles = 1000;
constexpr int kMaxSamplePrompts = 100;
constexpr int kMaxTargetModules = 1000;

bool IsLabelKey(absl::string_view key) {
  const auto allowed = [](char c) {
    return absl::ascii_islower(static_cast<unsigned char>(c)) ||
           absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '_' || c == '-';
  };
  return !key.empty() && key.size() <= kMaxLabelBytes &&
         absl::ascii_islower(static_cast<unsigned char>(key.front())) &&
         std::all_of(key.begin(), key.end(), allowed);
}

void CheckLabels(const v1::Job& job, FieldChecker& check) {
  if (job.labels_size() > kMaxLabels) {
    check.Add("labels", absl::StrCat("may have ", kMaxLabels, " entries; got ", job.labels_size()));
    return;
  }
  for (const auto& [key, value] : job.labels()) {
    const std::string field = absl::StrCat("labels[", SafeText(key, kMaxLabelBytes), "]");
    if (!IsLabelKey(key)) check.Add(field, "the key must match [a-z][a-z0-9_-]{0,62}");
    check.MaxBytes(field, value, kMaxLabelBytes);
  }
}

void CheckTop(const v1::Job& job, FieldChecker& check) {
  check.Enter("job.");
  check.Integer("priority", job.priority(), 0, 100);
  check.MaxBytes("display_name", job.display_name(), kMaxDisplayNameBytes);
  CheckLabels(job, check);
  check.Enter("job.resources.");
  check.Integer("devices", job.resources().devices(), 1, 1024);
  check.Choice("device_type", job.resources().device_type(), {"auto", "cpu", "cuda"});
  check.Integer("max_retries", job.resources().max_retries(), 0, 100);
  if (job.resources().has_max_runtime()) {
    check.PositiveDuration("max_runtime", job.resources().max_runtime());
  }
}

using DataFiles = google::protobuf::RepeatedPtrField<v1::DataFile>;

void CheckDataFiles(const DataFiles& files, absl::string_view list, FieldChecker& check) {
  if (files.size() > kMaxDataFiles) {
    check.Add(list, absl::StrCat("may have ", kMaxDataFiles, " files; got ", files.size()));
    return;
  }
  for (int i = 0; i < files.size(); ++i) {
    check.PathForm(absl::StrCat(list, "[", i, "].path"), files[i].path());
    check.Choice(absl::StrCat(list, "[", i, "].format"), files[i].format(),
                 {"auto", "prompt_completion", "messages", "text"});
  }
}

void CheckDataset(const v1::Dataset& dataset, FieldChecker& check) {
  check.Enter("job.spec.dataset.");
  if (dataset.train().empty()) check.Add("train", "is required; name at least one file");
  CheckDataFiles(dataset.train(), "train", check);
  CheckDataFiles(dataset.eval(), "eval", check);
  check.Integer("max_length", dataset.max_length(), 2, 1048576);
  check.Choice("truncation", dataset.truncation(), {"right"});
  if (!dataset.loss_on().empty()) {
    check.Choice("loss_on", dataset.loss_on(), {"completion", "all"});
  }
}

void CheckModuleNames(const google::protobuf::ListValue& names, FieldChecker& check) {
  if (names.values().empty()) return check.Add("target_modules", "the list is empty");
  if (names.values_size() > kMaxTargetModules) {
    return check.Add("target_modules", absl::StrCat("may have ", kMaxTargetModules, " names; got ",
                                                    names.values_size()));
  }
  std::set<std::string> seen;
  for (int i = 0; i < names.values_size(); ++i) {
    const std::string field = absl::StrCat("target_modules[", i, "]");
    const std::string& name = names.values(i).string_value();
    if (names.values(i).kind_case() != google::protobuf::Value::kStringValue) {
      check.Add(field, "must be a module's name, a string");
    } else if (name.empty()) {
      check.Add(field, "is empty");
    } else if (!seen.insert(name).second) {
      check.Add(field, absl::StrCat("`", SafeText(name, 100), "` stands twice"));
    }
  }
}

void CheckTargetModules(const google::protobuf::Value& modules, FieldChecker& check) {
  switch (modules.kind_case()) {
    case google::protobuf::Value::kStringValue:
      if (modules.string_value().empty()) check.Add("target_modules", "is an empty string");
      return;
    case google::protobuf::Value::kListValue:
      return CheckModuleNames(modules.list_value(), check);
    case google::protobuf::Value::kNullValue:
    case google::protobuf::Value::kNumberValue:
    case google::protobuf::Value::kBoolValue:
    case google::protobuf::Value::kStructValue:
    case google::protobuf::Value::KIND_NOT_SET:
      check.Add("target_modules",
                "must be a list of module names, a regular expression, or `all-linear`");
  }
}

void CheckLora(const v1::LoraConfig& lora, FieldChecker& check) {
  check.Enter("job.spec.lora.");
  check.Integer("r", lora.r(), 1, 4096);
  check.Number("lora_alpha", lora.lora_alpha(), kPositive);
  check.Number("lora_dropout", lora.lora_dropout(), kBelowOne);
  check.Choice("bias", lora.bias(), {"none"});
  if (!lora.init_lora_weights()) {
    check.Add("init_lora_weights", "must be true; other initialisations are not supported");
  }
  CheckTargetModules(lora.target_modules(), check);
}

void CheckOptimizer(const v1::TrainingArguments& training, FieldChecker& check) {
  check.Integer("per_device_train_batch_size", training.per_device_train_batch_size(), 1,
                kMaxBatch);
  check.Integer("per_device_eval_batch_size", training.per_device_eval_batch_size(), 1, kMaxBatch);
  check.Integer("gradient_accumulation_steps", training.gradient_accumulation_steps(), 1,
                kMaxBatch);
  check.Number("learning_rate", training.learning_rate(), kNotNegative);
  check.Choice("optim", training.optim(), {"adamw_torch"});
  check.Number("weight_decay", training.weight_decay(), kNotNegative);
  check.Number("adam_beta1", training.adam_beta1(), kBelowOne);
  check.Number("adam_beta2", training.adam_beta2(), kBelowOne);
  check.Number("adam_epsilon", training.adam_epsilon(), kPositive);
  check.Number("max_grad_norm", training.max_grad_norm(), kNotNegative);
  check.Choice("bf16", training.bf16(), {"auto", "false"});
  check.Choice("loss_denominator", training.loss_denominator(), {"hf", "shifted"});
}

void CheckWarmup(const v1::TrainingArguments& training, FieldChecker& check) {
  check.Number("warmup_ratio", training.warmup_ratio(), {0, 1});
  const double steps = training.warmup_steps();
  check.Number("warmup_steps", steps, kNotNegative);
  if (steps > 1 && steps != std::floor(steps)) {
    check.Add("warmup_steps", absl::StrCat("must be a whole number of updates, or a share below 1; "
                                           "got ",
                                           steps));
  }
}

void CheckSchedule(const v1::TrainingArguments& training, bool has_eval_rows, FieldChecker& check) {
  check.Number("num_train_epochs", training.num_train_epochs(), kPositive);
  check.Integer("max_steps", training.max_steps(), -1);
  check.Choice("lr_scheduler_type", training.lr_scheduler_type(),
               {"linear", "cosine", "constant", "constant_with_warmup"});
  CheckWarmup(training, check);
  check.Integer("logging_steps", training.logging_steps(), 1);
  check.Choice("eval_strategy", training.eval_strategy(), {"no", "steps", "epoch"});
  if (training.eval_strategy() != "no" && !has_eval_rows) {
    check.Add("eval_strategy", "needs rows to evaluate; name files in job.spec.dataset.eval");
  }
  check.Integer("eval_steps", training.eval_steps(), 1);
  check.Choice("save_strategy", training.save_strategy(), {"no", "steps", "epoch"});
  check.Integer("save_steps", training.save_steps(), 1);
  check.Integer("save_total_limit", training.save_total_limit(), 1);
}

void CheckSamplePrompt(const v1::SamplePrompt& prompt, const std::string& field,
                       FieldChecker& check) {
  if (prompt.messages().empty()) check.Add(absl::StrCat(field, ".messages"), "is required");
  for (int i = 0; i < prompt.messages_size(); ++i) {
    const std::string message = absl::StrCat(field, ".messages[", i, "]");
    check.Choice(absl::StrCat(message, ".role"), prompt.messages(i).role(),
                 {"system", "user", "assistant"});
    if (prompt.messages(i).content().empty()) {
      check.Add(absl::StrCat(message, ".content"), "is required");
    }
  }
  check.Integer(absl::StrCat(field, ".max_new_tokens"), prompt.max_new_tokens(), 1, 4096);
}

void CheckSamplePrompts(const v1::TrainingSpec& spec, FieldChecker& check) {
  check.Enter("job.spec.");
  if (spec.sample_prompts_size() > kMaxSamplePrompts) {
    check.Add("sample_prompts", absl::StrCat("may have ", kMaxSamplePrompts, " entries; got ",
                                             spec.sample_prompts_size()));
    return;
  }
  for (int i = 0; i < spec.sample_prompts_size(); ++i) {
    CheckSamplePrompt(spec.sample_prompts(i), absl::StrCat("sample_prompts[", i, "]"), check);
  }
}

void CheckSpec(const v1::TrainingSpec& spec, FieldChecker& check) {
  check.Enter("job.spec.");
  if (!v1::Task_IsValid(spec.task())) {
    check.Add("task", absl::StrCat("must be CAUSAL_LM; got the unknown value ", spec.task()));
  }
  check.PathForm("base_model.path", spec.base_model().path());
  check.Choice("base_model.dtype", spec.base_model().dtype(), {"auto", "float32"});
  check.Choice("parallelism.strategy", spec.parallelism().strategy(), {"auto", "none"});
  if (!spec.output().path().empty()) check.PathForm("output.path", spec.output().path());
  CheckSamplePrompts(spec, check);
  CheckDataset(spec.dataset(), check);
  CheckLora(spec.lora(), check);
  check.Enter("job.spec.training.");
  CheckOptimizer(spec.training(), check);
  CheckSchedule(spec.training(), !spec.dataset().eval().empty(), check);
}

// A path that the job reads or writes.
struct JobPath {
  std::string field;
  std::string path;
  PathKind kind;
  Reason reason;  // kUnspecified: need not exist.
};

std::vector<JobPath> PathsOf(const v1::TrainingSpec& spec) {
  std::vector<JobPath> paths = {{"job.spec.base_model.path", spec.base_model().path(),
                                 PathKind::kFileOrFolder, Reason::kModelNotFound}};
  const auto add = [&paths](const char* list, const DataFiles& files) {
    for (int i = 0; i < std::min(files.size(), kMaxDataFiles); ++i) {
      paths.push_back({absl::StrCat("job.spec.dataset.", list, "[", i, "].path"), files[i].path(),
                       PathKind::kFile, Reason::kDatasetNotFound});
    }
  };
  add("train", spec.dataset().train());
  add("eval", spec.dataset().eval());
  if (!spec.output().path().empty()) {
    paths.push_back({"job.spec.output.path", spec.output().path(), PathKind::kFileOrFolder,
                     Reason::kUnspecified});
  }
  return paths;
}

void CheckRoots(const std::vector<JobPath>& paths, const std::vector<std::string>& roots,
                FieldChecker& check) {
  check.Enter("");
  for (const JobPath& path : paths) {
    FieldChecker form("");
    form.PathForm(path.field, path.path);
    if (form.violations().empty() && !IsUnderRoots(path.path, roots)) {
      check.Add(path.field, absl::StrCat(path.path, " lies outside the daemon's allowed_roots: ",
                                         absl::StrJoin(roots, ", ")));
    }
  }
}

void CheckRequestIds(const v1::CreateJobRequest& request, FieldChecker& check) {
  check.Enter("");
  if (!request.job_id().empty() && !IsJobId(request.job_id())) {
    check.Add("job_id", absl::StrCat("must match [a-z][a-z0-9-]{0,62}; got `",
                                     SafeText(request.job_id(), 100), "`"));
  }
  if (!request.request_id().empty() && !IsUuid4(request.request_id())) {
    check.Add("request_id", absl::StrCat("must be a UUID of version 4; got `",
                                         SafeText(request.request_id(), 100), "`"));
  }
}

absl::Status Finish(const v1::Job& job, const ValidationContext& context, FieldChecker& check) {
  CheckTop(job, check);
  CheckSpec(job.spec(), check);
  const std::vector<JobPath> paths = PathsOf(job.spec());
  if (context.check_files) CheckRoots(paths, context.allowed_roots, check);
  if (!check.violations().empty()) return FieldErrors(check.violations());
  if (!context.check_files) return absl::OkStatus();
  for (const JobPath& path : paths) {
    if (path.reason == Reason::kUnspecified) continue;
    TRAIND_RETURN_IF_ERROR(CheckReadable(path.path, path.kind, path.reason, path.field));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateJob(const v1::Job& job, const ValidationContext& context) {
  FieldChecker check("");
  return Finish(job, context, check);
}

absl::Status ValidateCreateJobRequest(const v1::CreateJobRequest& request,
                                      const ValidationContext& context) {
  FieldChecker check("");
  CheckRequestIds(request, check);
  return Finish(request.job(), context, check);
}

bool IsUuid4(absl::string_view text) {
  constexpr absl::string_view kForm = "xxxxxxxx-xxxx-4xxx-vxxx-xxxxxxxxxxxx";
  if (text.size() != kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const char c = absl::ascii_tolower(static_cast<unsigned char>(text[i]));
    const bool fixed = kForm[i] == '-' || kForm[i] == '4';
    if (fixed && c != kForm[i]) return false;
    if (kForm[i] == 'v' && !absl::StrContains("89ab", absl::string_view(&c, 1))) return false;
    if (!fixed && !absl::ascii_isxdigit(static_cast<unsigned char>(c))) return false;
  }
  return true;
}

}  // namespace traind::jobspec
