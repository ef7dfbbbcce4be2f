#include "worker/trainer/evaluation.h"

#include "common/status/errors.h"

namespace traind {
namespace {

// Sums over batches; see EvaluateRows.
struct EvalSums {
  double weighted_batch_loss = 0;
  double nll = 0;
  int64_t tokens = 0;
  int64_t rows = 0;
};

bool HasTarget(const Example& row) {
  for (size_t i = 1; i < row.supervised.size(); ++i) {
    if (row.supervised[i] != 0) return true;
  }
  return false;
}

absl::Status AddBatch(CausalLm& model, const std::vector<const Example*>& rows, EvalSums& sums) {
  if (rows.empty()) return absl::OkStatus();
  TRAIND_ASSIGN_OR_RETURN(const LossSum loss, model.Evaluate(PackExamples(rows)));
  const auto count = static_cast<int64_t>(rows.size());
  sums.weighted_batch_loss +=
      loss.nll_sum / static_cast<double>(loss.targets) * static_cast<double>(count);
  sums.nll += loss.nll_sum;
  sums.tokens += loss.targets;
  sums.rows += count;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::EvalMetrics> EvaluateRows(CausalLm& model, const std::vector<Example>& rows,
                                             int64_t batch_size, const StopFlag& stop) {
  EvalSums sums;
  std::vector<const Example*> batch;
  for (const Example& row : rows) {
    if (HasTarget(row)) batch.push_back(&row);
    const bool full = static_cast<int64_t>(batch.size()) == batch_size;
    if (!full && &row != &rows.back()) continue;
    if (stop.kind() != StopKind::kNone) return absl::CancelledError("asked to stop");
    TRAIND_RETURN_IF_ERROR(AddBatch(model, batch, sums));
    batch.clear();
  }
  if (sums.rows == 0) {
    return Error(absl::StatusCode::kFailedPrecondition, Reason::kNoSupervisedTokens,
                 "no eval row has a token to predict; check dataset.eval and dataset.loss_on");
  }
  v1::EvalMetrics metrics;
  metrics.set_loss(sums.weighted_batch_loss / static_cast<double>(sums.rows));
  metrics.set_loss_token(sums.nll / static_cast<double>(sums.tokens));
  metrics.set_supervised_tokens(sums.tokens);
  metrics.set_rows(sums.rows);
  return metrics;
}

absl::StatusOr<v1::SampleAnswer> AnswerQuestion(CausalLm& model, const SampleQuestions& samples,
                                                size_t index) {
  const SampleQuestion& question = samples.questions[index];
  TRAIND_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      model.GenerateGreedy(question.input_ids, question.max_new_tokens, samples.stop_ids));
  v1::SampleAnswer answer;
  answer.set_prompt_index(static_cast<int32_t>(index));
  answer.set_prompt(question.prompt);
  TRAIND_ASSIGN_OR_RETURN(*answer.mutable_answer(), samples.decode(ids));
  return answer;
}

}  // namespace traind
