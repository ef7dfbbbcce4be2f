#include "worker/trainer/run_state.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/errors.h"

namespace traind {
namespace {

absl::Status Corrupt(absl::string_view field) {
  return Error(absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
               absl::StrCat("the checkpoint's run state has no valid `", field, "`"),
               {{"field", field}});
}

absl::Status ReadCount(const nlohmann::json& object, const char* field, int64_t& count) {
  const auto found = object.find(field);
  if (found == object.end() || !found->is_number_integer() || found->get<int64_t>() < 0) {
    return Corrupt(field);
  }
  count = found->get<int64_t>();
  return absl::OkStatus();
}

}  // namespace

std::string RunStateToJson(const RunState& state) {
  const nlohmann::json object = {
      {"step", state.step},
      {"updates", state.updates},
      {"nonfinite_in_a_row", state.nonfinite_in_a_row},
      // JSON has no NaN, which a sum of losses may be.
      {"pending_loss_sum", absl::StrFormat("%a", state.pending.loss_sum)},
      {"pending_losses", state.pending.losses},
      {"pending_tokens", state.pending.tokens},
      {"pending_supervised_tokens", state.pending.supervised_tokens},
  };
  return object.dump(2);
}

absl::StatusOr<RunState> RunStateFromJson(absl::string_view json) {
  const auto object =
      nlohmann::json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Corrupt("{");
  RunState state;
  TRAIND_RETURN_IF_ERROR(ReadCount(object, "step", state.step));
  TRAIND_RETURN_IF_ERROR(ReadCount(object, "updates", state.updates));
  TRAIND_RETURN_IF_ERROR(ReadCount(object, "nonfinite_in_a_row", state.nonfinite_in_a_row));
  TRAIND_RETURN_IF_ERROR(ReadCount(object, "pending_losses", state.pending.losses));
  TRAIND_RETURN_IF_ERROR(ReadCount(object, "pending_tokens", state.pending.tokens));
  TRAIND_RETURN_IF_ERROR(
      ReadCount(object, "pending_supervised_tokens", state.pending.supervised_tokens));
  const auto sum = object.find("pending_loss_sum");
  if (sum == object.end() || !sum->is_string()) return Corrupt("pending_loss_sum");
  const std::string text = sum->get<std::string>();
  char* end = nullptr;
  state.pending.loss_sum = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return Corrupt("pending_loss_sum");
  return state;
}

}  // namespace traind
