// One run from its options to the published adapter.
#pragma once

#include "absl/status/statusor.h"
#include "worker/trainer/report_sink.h"
#include "worker/trainer/run_options.h"
#include "worker/trainer/stop_flag.h"
#include "worker/trainer/trainer.h"

namespace traind {

// Checks and loads what the run needs, cheap things first (paths, the model's headers, tokenizer,
// rows, adapter layout, then weights), so that a wrong input ends it in seconds; reports the plan,
// trains, exports the adapter with the tokenizer's files and checks what it wrote.
//
// Errors: MODEL_NOT_FOUND, MODEL_INVALID, DATASET_NOT_FOUND, DATASET_INVALID,
// NO_SUPERVISED_TOKENS, TEXT_INVALID, TARGET_MODULES_NOT_FOUND, NON_FINITE_LOSS, OUT_OF_MEMORY,
// DISK_FULL, OUTPUT_FAILED, CHECKPOINT_CORRUPT, ADAPTER_INVALID, ATTEMPT_FENCED. Nothing is thrown.
absl::StatusOr<TrainingEnd> RunTraining(const RunOptions& options, ReportSink& sink,
                                        const StopFlag& stop);

}  // namespace traind
