// The API's messages as JSON.
#pragma once

#include "absl/status/status.h"
#include "client/output/io_streams.h"
#include "google/protobuf/message.h"

namespace traind::client {

enum class JsonStyle { kPretty, kOneLine };

// Writes the JSON form of protocol buffers with the field names of the .proto files (snake_case)
// and a line end to stdout. Unset fields are left out, 64-bit integers are strings, and NaN and
// infinities are the strings "NaN", "Infinity" and "-Infinity", so that the text is JSON for every
// reader. UNIMPLEMENTED if a newer daemon sent something that this program has no type for.
absl::Status PrintJson(const IoStreams& io, const google::protobuf::Message& message,
                       JsonStyle style = JsonStyle::kPretty);

}  // namespace traind::client
