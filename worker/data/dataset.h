// Files of rows, read, tokenised, masked and truncated.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/data/packed_batch.h"
#include "worker/text/text_model.h"

namespace traind {

// The shape of a row.
enum class RowFormat {
  kAuto,              // Told by the fields of a file's first row.
  kPromptCompletion,  // {"prompt": …, "completion": …}, both text or both lists of messages.
  kMessages,          // {"messages": [{"role": …, "content": …}, …]}.
  kText,              // {"text": …}.
};

// Which tokens are trained.
enum class LossOn {
  kDefault,     // kCompletion for kPromptCompletion and kMessages, kAll for kText.
  kCompletion,  // The completion, or every assistant turn with the token that ends it.
  kAll,
};

// Reads `auto`, `prompt_completion`, `messages`, `text`; the empty text means `auto`. Errors:
// INVALID_ARGUMENT (INVALID_FIELD) with the names that exist.
absl::StatusOr<RowFormat> RowFormatFromName(absl::string_view name);

// Reads `completion`, `all`; the empty text means the default. Errors as RowFormatFromName.
absl::StatusOr<LossOn> LossOnFromName(absl::string_view name);

// One JSON Lines file.
struct DataFile {
  std::string path;
  RowFormat format = RowFormat::kAuto;
};

struct DatasetOptions {
  int64_t max_length = 1024;  // Longest row in tokens; the right end of longer rows is cut.
  LossOn loss_on = LossOn::kDefault;
  int64_t max_row_bytes = int64_t{64} << 20;  // A longer line is an error that names it.
  // Called now and then with the rows read so far; an error (for instance CANCELLED) stops the
  // loading and is returned. May be empty.
  std::function<absl::Status(int64_t rows_read)> on_progress;
};

// What became of the rows; shown to the user before the first step.
struct DatasetReport {
  int64_t rows_read = 0;
  int64_t rows_kept = 0;
  // Reason → rows. Reasons: `no_supervised_tokens` (the row has none at all) and
  // `no_supervised_tokens_after_truncation` (all lay beyond max_length).
  std::map<std::string, int64_t> rows_dropped;
  int64_t rows_truncated = 0;     // Among the kept ones.
  int64_t tokens = 0;             // Of the kept rows.
  int64_t supervised_tokens = 0;  // Of the kept rows, after the shift: tokens that are predicted.
  std::vector<std::string> warnings;  // One sentence per kind of trouble, with a count of rows.
};

struct Dataset {
  std::vector<Example> examples;  // In the order of files and rows.
  DatasetReport report;
};

// Reads all files. Masks follow TRL's SFTTrainer: prompt/completion rows are tokenised as prompt
// and as prompt + completion, and the first len(prompt) tokens are masked; EOS is appended to texts
// and completions that lack it; messages are rendered by the chat template, and the assistant's
// turns are found by its {% generation %} blocks or, without them, by rendering the conversation's
// beginnings. Rows without a token to predict are dropped and counted.
//
// Errors: DATASET_NOT_FOUND (no such file), DATASET_INVALID (unreadable file, no rows, a row that
// is not as its format demands; names file and line), NO_SUPERVISED_TOKENS as FAILED_PRECONDITION
// if every row was dropped, TEXT_INVALID if the template fails.
absl::StatusOr<Dataset> LoadDataset(const std::vector<DataFile>& files, const TextModel& model,
                                    const DatasetOptions& options);

}  // namespace traind
