// Tells whether a retried request is the same one.
#pragma once

#include <cstdint>
#include <string>

#include "traind/v1/job_service.pb.h"

namespace traind::controller {

// Over what the caller asked for, without the request id. The same in every run of the program:
// it is stored.
uint64_t HashRequest(const v1::CreateJobRequest& request, const std::string& owner);

}  // namespace traind::controller
