#include "client/output/json.h"

#include <string>

#include "google/protobuf/util/json_util.h"
#include "google/rpc/error_details.pb.h"

namespace traind::client {

absl::Status PrintJson(const IoStreams& io, const google::protobuf::Message& message,
                       JsonStyle style) {
  // Details of errors are packed in Any: their types must be linked in to be printed.
  (void)google::rpc::ErrorInfo::descriptor();
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = style == JsonStyle::kPretty;
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(message, &text, options).ok()) {
    return absl::UnimplementedError(
        "the daemon's answer has a part that this version of trainctl cannot print; update "
        "trainctl, or use --output table");
  }
  if (text.empty() || text.back() != '\n') text.push_back('\n');
  *io.out << text << std::flush;
  return absl::OkStatus();
}

}  // namespace traind::client
