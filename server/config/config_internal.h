// The steps of ResolveConfig.
#pragma once

#include <vector>

#include "common/status/errors.h"
#include "server/config/config.h"

namespace traind::config {

// Sets every unset field of `config`.
void FillDefaults(const HostDefaults& host, v1::TraindConfig& config);

// Every wrong field of a configuration with defaults.
std::vector<FieldViolation> FindViolations(const v1::TraindConfig& config);

}  // namespace traind::config
