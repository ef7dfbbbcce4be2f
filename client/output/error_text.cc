#include "client/output/error_text.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/output/format.h"
#include "common/status/errors.h"
#include "common/status/rpc_status.h"
#include "google/rpc/error_details.pb.h"

namespace traind::client {

absl::string_view HintFor(Reason reason) {
  switch (reason) {
    case Reason::kJobNotFound:
      return "`trainctl job list` shows the jobs that exist";
    case Reason::kJobExists:
      return "choose another --job-id, or leave it out";
    case Reason::kJobNotDeletable:
      return "`trainctl job cancel` it first";
    case Reason::kEtagMismatch:
      return "the job changed meanwhile: read it again and decide again";
    case Reason::kDeviceCountImpossible:
      return "`trainctl node list` shows what there is; lower `resources.devices`";
    case Reason::kQueueFull:
      return "try later, or raise the daemon's limit";
    case Reason::kDiskFull:
      return "free some space; the newest valid checkpoint is kept";
    case Reason::kDraining:
    case Reason::kStoreBusy:
    case Reason::kTooManyStreams:
      return "try again in a moment";
    case Reason::kCheckpointNotFound:
      return "`trainctl checkpoint list` shows the checkpoints that exist";
    case Reason::kCheckpointCorrupt:
      return "use another checkpoint, and check the disk";
    case Reason::kUnauthenticated:
      return "pass --token-file or TRAIND_TOKEN, or use the daemon's Unix socket";
    case Reason::kPermissionDenied:
      return "ask the operator of the daemon";
    case Reason::kBug:
      return "this is a defect of traind: please report it with this text";
    case Reason::kModelNotFound:
    case Reason::kDatasetNotFound:
      return "check the path, and that the daemon's user may read it";
    case Reason::kNoSupervisedTokens:
      return "check `dataset.loss_on`, `dataset.max_length` and the rows";
    case Reason::kNonFiniteLoss:
      return "lower `training.learning_rate`, and look at the rows";
    case Reason::kOutOfMemory:
      return "lower `training.per_device_train_batch_size` or `dataset.max_length`";
    case Reason::kWorkerLost:
      return "`trainctl job logs` shows its last words";
    case Reason::kLaunchFailed:
      return "`trainctl server check` shows what is missing";
    case Reason::kTimeLimit:
      return "raise `resources.max_runtime`; the last checkpoint is kept";
    case Reason::kOutputFailed:
      return "check the folder's permissions";
    case Reason::kNodeNotFound:
      return "`trainctl node list` shows the nodes";
    // Their messages say what to do.
    case Reason::kUnspecified:
    case Reason::kInvalidField:
    case Reason::kBadPageToken:
    case Reason::kRequestIdReused:
    case Reason::kJobNotCancellable:
    case Reason::kSequenceOutOfRange:
    case Reason::kAttemptFenced:
    case Reason::kModelInvalid:
    case Reason::kDatasetInvalid:
    case Reason::kTargetModulesNotFound:
    case Reason::kCancelledByUser:
    case Reason::kTextInvalid:
    case Reason::kAdapterInvalid:
    case Reason::kAddressInUse:
    case Reason::kStateDirLocked:
    case Reason::kConfigInvalid:
    case Reason::kStoreInvalid:
      return "";
  }
  return "";  // A reason of a newer daemon.
}

namespace {

// The message of an error about fields begins with the first of them, which is listed anyway.
std::string Headline(const absl::Status& status, const std::vector<FieldViolation>& violations) {
  if (violations.empty() || !absl::StartsWith(status.message(), violations.front().field)) {
    return OneLine(status.message());
  }
  return violations.size() == 1 ? "a field is wrong" : "some fields are wrong";
}

}  // namespace

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
  for (const auto& detail : ToRpcStatus(status).details()) {
    google::rpc::ErrorInfo info;
    if (!detail.UnpackTo(&info)) continue;
    for (const auto& [key, value] : info.metadata()) {
      absl::StrAppend(&text, "  ", OneLine(key), "=", OneLine(value), "\n");
    }
  }
  return text;
}

}  // namespace traind::client
