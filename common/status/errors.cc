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
// Details travel in a header, of which gRPC accepts 8 KiB in all.
constexpr size_t kMaxViolationBytes = 4096;
constexpr size_t kMaxMetadataBytes = 512;
constexpr size_t kMaxFieldBytes = 128;
constexpr size_t kMaxDescriptionBytes = 512;
constexpr size_t kMaxMessageBytes = 2048;

// Length of the UTF-8 character at the start of `text`, or 0 if there is no valid one.
size_t CharacterBytes(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xED && byte(1) > 0x9F;
  const bool too_large = lead == 0xF4 && byte(1) > 0x8F;
  return overlong || surrogate || too_large ? 0 : length;
}

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

std::string SafeText(absl::string_view text, size_t max_bytes) {
  constexpr absl::string_view kEllipsis = "...";
  std::string result;
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    const size_t taken = length == 0 ? 1 : length;
    if (result.size() + taken > max_bytes) {
      while (result.size() + kEllipsis.size() > max_bytes) {
        while ((static_cast<unsigned char>(result.back()) & 0xC0) == 0x80) result.pop_back();
        result.pop_back();
      }
      return absl::StrCat(result, kEllipsis);
    }
    absl::StrAppend(&result, length == 0 ? "?" : text.substr(0, length));
    text.remove_prefix(taken);
  }
  return result;
}

absl::Status Error(absl::StatusCode code, Reason reason, absl::string_view message,
                   ErrorMetadata metadata) {
  absl::Status status(code, SafeText(message, kMaxMessageBytes));
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(ReasonName(reason)));
  info.set_domain(std::string(kDomain));
  for (const auto& [key, value] : metadata) {
    (*info.mutable_metadata())[std::string(key)] = SafeText(value, kMaxMetadataBytes);
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
    google::rpc::BadRequest::FieldViolation added;
    added.set_field(SafeText(violation.field, kMaxFieldBytes));
    added.set_description(SafeText(violation.description, kMaxDescriptionBytes));
    if (details.ByteSizeLong() + added.ByteSizeLong() > kMaxViolationBytes) break;
    *details.add_field_violations() = added;
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
