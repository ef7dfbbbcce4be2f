// The loss over rows that are not trained, and answers to sample prompts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "traind/v1/event.pb.h"
#include "worker/data/packed_batch.h"
#include "worker/model/causal_lm.h"
#include "worker/trainer/stop_flag.h"

namespace traind {

// The losses of `rows`, taken in order, `batch_size` to a batch: `loss` as Transformers defines
// eval_loss (mean token loss of each batch, averaged with the batches' rows as weights) and
// `loss_token`, the mean over all tokens. Rows without a token to predict are left out, so the
// result is never 0/0. Step and runtime are the caller's. Errors: the model's; CANCELLED once
// `stop` asks to stop.
absl::StatusOr<v1::EvalMetrics> EvaluateRows(CausalLm& model, const std::vector<Example>& rows,
                                             int64_t batch_size, const StopFlag& stop);

// A sample prompt, ready for the model.
struct SampleQuestion {
  std::string prompt;  // The last user message.
  std::vector<int32_t> input_ids;
  int64_t max_new_tokens = 64;
};

struct SampleQuestions {
  std::vector<SampleQuestion> questions;
  std::vector<int32_t> stop_ids;
  std::function<absl::StatusOr<std::string>(absl::Span<const int32_t>)> decode;
};

// The greedy answer to question `index`, without the step. Errors: the model's and decode's.
absl::StatusOr<v1::SampleAnswer> AnswerQuestion(CausalLm& model, const SampleQuestions& samples,
                                                size_t index);

}  // namespace traind
