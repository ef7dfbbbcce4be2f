// What a person sees of an error.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/status/reason.h"

namespace traind::client {

// What to do about `reason`; empty if the message of such an error says it all.
absl::string_view HintFor(Reason reason);

// Lines `error: …`, one line `  field: description` for each wrong field, `reason: …`, `hint: …`.
// With `debug` also the code and all metadata. Ends with a line end.
std::string ErrorText(const absl::Status& status, bool debug);

}  // namespace traind::client
