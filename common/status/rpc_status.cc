#include "common/status/rpc_status.h"

#include <string>

#include "absl/strings/cord.h"

namespace traind {
namespace {

constexpr size_t kMaxMessageBytes = 1024;

// Cuts at a character's end, so that the text stays valid UTF-8.
std::string CutMessage(absl::string_view message) {
  if (message.size() <= kMaxMessageBytes) return std::string(message);
  size_t end = kMaxMessageBytes;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0) == 0x80) --end;
  return std::string(message.substr(0, end));
}

}  // namespace

google::rpc::Status ToRpcStatus(const absl::Status& status) {
  google::rpc::Status result;
  result.set_code(static_cast<int>(status.code()));
  result.set_message(CutMessage(status.message()));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    auto* detail = result.add_details();
    detail->set_type_url(std::string(url));
    detail->set_value(std::string(payload));
  });
  return result;
}

absl::Status FromRpcStatus(const google::rpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code()), status.message());
  for (const auto& detail : status.details()) {
    result.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  }
  return result;
}

}  // namespace traind
