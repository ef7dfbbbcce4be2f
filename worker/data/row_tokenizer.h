// One row of a data file to tokens and a mask.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "worker/data/dataset.h"
#include "worker/text/text_model.h"

namespace traind {

// A row before truncation.
struct TokenizedRow {
  Example example;
  bool prompt_is_no_prefix = false;      // The prompt's tokens do not begin the whole row's.
  bool turn_without_stop_token = false;  // Something is trained that no special token ends.
};

// Tells the format from the fields that a row has. Errors: DATASET_INVALID, listing the fields.
absl::StatusOr<RowFormat> DetectRowFormat(const nlohmann::ordered_json& row);

// Tokenises rows as TRL's SFTTrainer does. Thread-safe; borrows the model.
class RowTokenizer {
 public:
  RowTokenizer(const TextModel& model, LossOn loss_on) : model_(model), loss_on_(loss_on) {}

  // REQUIRES: `format` is not kAuto. Errors: DATASET_INVALID, naming the field that is missing or
  // of another type; TEXT_INVALID.
  absl::StatusOr<TokenizedRow> Tokenize(const nlohmann::ordered_json& row, RowFormat format) const;

 private:
  absl::StatusOr<TokenizedRow> PromptCompletion(const nlohmann::ordered_json& row) const;
  absl::StatusOr<TokenizedRow> Messages(const nlohmann::ordered_json& row) const;
  absl::StatusOr<TokenizedRow> Text(const nlohmann::ordered_json& row) const;
  absl::Status RequireChatTemplate() const;
  std::string WithEos(const std::string& text) const;
  bool EndsWithStop(const std::vector<int32_t>& ids) const;

  const TextModel& model_;
  LossOn loss_on_;
};

}  // namespace traind
