// Why something failed, as an enum that code without Protobuf can use.
#pragma once

#include "absl/strings/string_view.h"

namespace traind {

// The same names and numbers as traind.v1.ErrorReason, which docs/errors.md explains; a test
// compares the two.
enum class Reason {
  kUnspecified = 0,
  kInvalidField = 1,
  kBadPageToken = 2,
  kRequestIdReused = 3,
  kJobNotFound = 4,
  kJobExists = 5,
  kJobNotCancellable = 6,
  kJobNotDeletable = 7,
  kEtagMismatch = 8,
  kDeviceCountImpossible = 9,
  kQueueFull = 10,
  kDiskFull = 11,
  kDraining = 12,
  kStoreBusy = 13,
  kCheckpointNotFound = 14,
  kCheckpointCorrupt = 15,
  kSequenceOutOfRange = 16,
  kUnauthenticated = 17,
  kPermissionDenied = 18,
  kBug = 19,
  kNodeNotFound = 20,
  kAttemptFenced = 21,
  kTooManyStreams = 22,
  kModelNotFound = 40,
  kModelInvalid = 41,
  kDatasetNotFound = 42,
  kDatasetInvalid = 43,
  kNoSupervisedTokens = 44,
  kTargetModulesNotFound = 45,
  kNonFiniteLoss = 46,
  kOutOfMemory = 47,
  kWorkerLost = 48,
  kLaunchFailed = 49,
  kTimeLimit = 50,
  kCancelledByUser = 51,
  kTextInvalid = 52,
  kOutputFailed = 53,
  kAdapterInvalid = 54,
  kAddressInUse = 60,
  kStateDirLocked = 61,
  kConfigInvalid = 62,
  kStoreInvalid = 63,
};

// The name on the wire, such as `INVALID_FIELD`.
absl::string_view ReasonName(Reason reason);

// The reverse; kUnspecified for a name that is not known.
Reason ReasonFromName(absl::string_view name);

}  // namespace traind
