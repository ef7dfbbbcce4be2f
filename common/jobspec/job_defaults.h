// The value of every field that a user left unset.
#pragma once

#include <string>

#include "traind/v1/job.pb.h"

namespace traind::jobspec {

// Sets every unset field of `job` that a user may set to the default that its comment in the protos
// names, and resolves `auto`; `device_type` is what `auto` means on this daemon. Fields that have a
// value keep it, right or wrong. A second call changes nothing.
//
// Two things are left to the worker, which reads the rows: the `auto` format of a data file, and
// `loss_on` while a format is `auto`.
void FillDefaults(v1::Job* job, const std::string& device_type = "cpu");

}  // namespace traind::jobspec
