// The version that the daemon reports.
#pragma once

namespace traind::daemon {

inline constexpr char kVersion[] = TRAIND_VERSION;

}  // namespace traind::daemon
