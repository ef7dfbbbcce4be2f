// What every service holds.
#pragma once

#include "server/api/api_server.h"
#include "server/api/rpc_runner.h"

namespace traind::api {

// A value; what it points to outlives the services.
struct ServiceContext {
  const ApiOptions* options = nullptr;
  ApiDependencies parts;
  RpcRunner* runner = nullptr;
};

}  // namespace traind::api
