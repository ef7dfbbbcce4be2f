#include "client/output/error_text.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/output/format.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"
#include "google/rpc/error_details.pb.h"

namespace traind::client {

namespace {

// The reasons that are not here have messages that say what to do.
constexpr std::pair<Reason, absl::string_view> kHints[] = {
    {Reason::kJobNotFound, "`trainctl job list` shows the jobs that exist"},
    {Reason::kJobExists, "choose another --job-id, or leave it out"},
    {Reason::kJobNotDeletable, "`trainctl job cancel` it first"},
    {Reason::kEtagMismatch, "the job changed meanwhile: read it again and decide again"},
    {Reason::kDeviceCountImpossible,
     "`trainctl node list` shows what there is; lower `resources.devices`"},
    {Reason::kQueueFull, "try later, or raise the daemon's limit"},
    {Reason::kDiskFull, "free some space; the newest valid checkpoint is kept"},
    {Reason::kDraining, "try again in a moment"},
    {Reason::kStoreBusy, "try again in a moment"},
    {Reason::kTooManyStreams, "try again in a moment"},
    {Reason::kCheckpointNotFound, "`trainctl checkpoint list` shows the checkpoints that exist"},
    {Reason::kCheckpointCorrupt, "use another checkpoint, and check the disk"},
    {Reason::kUnauthenticated,
     "pass --token-file or TRAIND_TOKEN, or use the daemon's Unix socket"},
    {Reason::kPermissionDenied, "ask the operator of the daemon"},
    {Reason::kBug, "this is a defect of traind: please report it with this text"},
    {Reason::kModelNotFound, "check the path, and that the daemon's user may read it"},
    {Reason::kDatasetNotFound, "check the path, and that the daemon's user may read it"},
    {Reason::kNoSupervisedTokens, "check `dataset.loss_on`, `dataset.max_length` and the rows"},
    {Reason::kNonFiniteLoss, "lower `training.learning_rate`, and look at the rows"},
    {Reason::kOutOfMemory, "lower `training.per_device_train_batch_size` or `dataset.max_length`"},
    {Reason::kWorkerLost, "`trainctl job logs` shows its last words"},
    {Reason::kLaunchFailed, "`trainctl server check` shows what is missing"},
    {Reason::kTimeLimit, "raise `resources.max_runtime`; the last checkpoint is kept"},
    {Reason::kOutputFailed, "check the folder's permissions"},
    {Reason::kNodeNotFound, "`trainctl node list` shows the nodes"},
};

// The message of an error about fields begins with the first of them, which is listed anyway.
std::string Headline(const absl::Status& status, const std::vector<FieldViolation>& violations) {
  if (violations.empty() || !absl::StartsWith(status.message(), violations.front().field)) {
    return OneLine(status.message());
  }
  return violations.size() == 1 ? "a field is wrong" : "some fields are wrong";
}

}  // namespace

absl::string_view HintFor(Reason reason) {
  for (const auto& [known, hint] : kHints) {
    if (known == reason) return hint;
  }
  return "";
}

std::string ErrorText(const absl::Status& status, bool debug) {
  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  std::string text = absl::StrCat("error: ", Headline(status, violations), "\n");
  for (const FieldViolation& violation : violations) {
    absl::StrAppend(&text, "  ", OneLine(violation.field), ": ", OneLine(violation.description),
                    "\n");
  }
  const Reason reason = ReasonOf(status);
  if (reason != Reason::kUnspecified) absl::StrAppend(&text, "reason: ", ReasonName(reason), "\n");
  if (const absl::string_view hint = HintFor(reason); !hint.empty()) {
    absl::StrAppend(&text, "hint: ", hint, "\n");
  }
  if (!debug) return text;
  absl::StrAppend(&text, "code: ", absl::StatusCodeToString(status.code()), "\n");
  const google::rpc::Status with_details = ToRpcStatus(status);
  for (const auto& detail : with_details.details()) {
    google::rpc::ErrorInfo info;
    if (!detail.UnpackTo(&info)) continue;
    for (const auto& [key, value] : info.metadata()) {
      absl::StrAppend(&text, "  ", OneLine(key), "=", OneLine(value), "\n");
    }
  }
  return text;
}

}  // namespace traind::client
