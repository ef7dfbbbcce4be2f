// Named places where a test can break the program.
//
// Compiled in only with TRAIND_FAULT_POINTS=ON. The environment variable TRAIND_FAULT arms one:
// `name:exit` (_exit(137), as kill -9 would), `name:enospc` (the disk is full), with `@N` for the
// N-th pass (`checkpoint.before_rename:exit@2`). docs/testing.md lists the names.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace traind {

#ifdef TRAIND_FAULT_POINTS
absl::Status FaultPoint(absl::string_view name);
#else
inline absl::Status FaultPoint(absl::string_view) { return absl::OkStatus(); }
#endif

}  // namespace traind
