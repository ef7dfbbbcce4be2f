#include "common/status/errors.h"

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "traind/v1/error_reason.pb.h"

namespace traind {
namespace {

constexpr absl::string_view kErrorInfoUrl = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kBadRequestUrl = "type.googleapis.com/google.rpc.BadRequest";
constexpr absl::string_view kDomain = "traind";
constexpr size_t kMaxViolations = 20;

template <typename Message>
void Attach(absl::Status& status, absl::string_view url, const Message& message) {
  status.SetPayload(url, absl::Cord(message.SerializeAsString()));
}

template <typename Message>
Message Payload(const absl::Status& status, absl::string_view url) {
  Message message;
  if (auto payload = status.GetPayload(url)) message.ParseFromString(std::string(*payload));
  return message;
}

absl::StatusCode CodeOfErrno(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return absl::StatusCode::kResourceExhausted;
    case ENOENT:
    case ENOTDIR:
      return absl::StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return absl::StatusCode::kPermissionDenied;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::string_view ReasonName(Reason reason) {
  return v1::ErrorReason_Name(static_cast<v1::ErrorReason>(reason));
}

Reason ReasonFromName(absl::string_view name) {
  v1::ErrorReason reason;
  if (!v1::ErrorReason_Parse(std::string(name), &reason)) return Reason::kUnspecified;
  return static_cast<Reason>(reason);
}

absl::Status Error(absl::StatusCode code, Reason reason, absl::string_view message,
                   ErrorMetadata metadata) {
  absl::Status status(code, message);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(reason)));
  info.set_domain(std::string(kDomain));
  for (const auto& [key, value] : metadata) {
    (*info.mutable_metadata())[std::string(key)] = std::string(value);
  }
  Attach(status, kErrorInfoUrl, info);
  return status;
}

absl::Status FieldErrors(const std::vector<FieldViolation>& violations) {
  const FieldViolation& first = violations.front();
  std::string message = absl::StrCat(first.field, ": ", first.description);
  if (violations.size() > 1) {
    absl::StrAppend(&message, " (and ", violations.size() - 1, " more wrong fields)");
  }
  absl::Status status = Error(absl::StatusCode::kInvalidArgument, Reason::kInvalidField, message,
                              {{"field", first.field}});
  google::rpc::BadRequest details;
  for (const FieldViolation& violation : violations) {
    if (static_cast<size_t>(details.field_violations_size()) == kMaxViolations) break;
    auto* added = details.add_field_violations();
    added->set_field(violation.field);
    added->set_description(violation.description);
  }
  Attach(status, kBadRequestUrl, details);
  return status;
}

absl::Status ErrnoError(int error_number, Reason reason, absl::string_view action,
                        absl::string_view path) {
  const absl::StatusCode code = CodeOfErrno(error_number);
  const bool disk_full = code == absl::StatusCode::kResourceExhausted;
  const char* text = std::strerror(error_number);
  return Error(code, disk_full ? Reason::kDiskFull : reason,
               absl::StrCat("cannot ", action, " ", path, ": ", text,
                            disk_full ? "; free some space and try again" : ""),
               {{"path", path}, {"error", text}});
}

Reason ReasonOf(const absl::Status& status) {
  return ReasonFromName(Payload<google::rpc::ErrorInfo>(status, kErrorInfoUrl).reason());
}

std::string MetadataOf(const absl::Status& status, absl::string_view key) {
  const auto info = Payload<google::rpc::ErrorInfo>(status, kErrorInfoUrl);
  const auto found = info.metadata().find(std::string(key));
  return found == info.metadata().end() ? "" : found->second;
}

std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const auto details = Payload<google::rpc::BadRequest>(status, kBadRequestUrl);
  for (const auto& violation : details.field_violations()) {
    violations.push_back({violation.field(), violation.description()});
  }
  return violations;
}

absl::Status WithContext(const absl::Status& status, absl::string_view prefix) {
  absl::Status result(status.code(), absl::StrCat(prefix, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { result.SetPayload(url, payload); });
  return result;
}

}  // namespace traind
