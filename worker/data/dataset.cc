#include "worker/data/dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status/errors.h"
#include "worker/data/jsonl_reader.h"
#include "worker/data/row_tokenizer.h"

namespace traind {
namespace {

constexpr char kNoneAtAll[] = "no_supervised_tokens";
constexpr char kNoneAfterTruncation[] = "no_supervised_tokens_after_truncation";
constexpr int64_t kProgressInterval = 256;  // Rows.

// Tokens that are predicted: the first one never is.
int64_t Targets(const Example& example) {
  if (example.supervised.empty()) return 0;
  return std::count_if(example.supervised.begin() + 1, example.supervised.end(),
                       [](uint8_t is_supervised) { return is_supervised != 0; });
}

std::string Rows(int64_t count) { return absl::StrCat(count, count == 1 ? " row" : " rows"); }

// Reads files into one data set.
class DatasetLoader {
 public:
  DatasetLoader(const TextModel& model, const DatasetOptions& options)
      : options_(options), tokenizer_(model, options.loss_on) {}

  absl::Status Read(const DataFile& file) {
    TRAIND_ASSIGN_OR_RETURN(JsonlReader reader,
                            JsonlReader::Open(file.path, options_.max_row_bytes));
    RowFormat format = file.format;
    int64_t rows = 0;
    while (true) {
      TRAIND_ASSIGN_OR_RETURN(const std::optional<JsonlRow> row, reader.Next());
      if (!row.has_value()) break;
      absl::Status status = AddRow(row->value, format);
      if (!status.ok()) return AtLine(status, file.path, row->line);
      ++rows;
      TRAIND_RETURN_IF_ERROR(ReportProgress());
    }
    if (rows > 0) return absl::OkStatus();
    return Error(absl::StatusCode::kInvalidArgument, Reason::kDatasetInvalid,
                 absl::StrCat(file.path, " has no rows"), {{"file", file.path}});
  }

  absl::StatusOr<Dataset> Finish() {
    DatasetReport& report = dataset_.report;
    if (report.rows_kept == 0) return NothingToTrain();
    if (no_prefix_rows_ > 0) {
      report.warnings.push_back(absl::StrCat(
          Rows(no_prefix_rows_),
          ": the prompt's tokens do not begin the row's tokens, so that the mask's end is off by "
          "some tokens; end the prompt at a word's end"));
    }
    if (no_stop_rows_ > 0) {
      report.warnings.push_back(absl::StrCat(
          Rows(no_stop_rows_),
          ": no special token ends what is trained, so that the model does not learn to stop"));
    }
    if (report.rows_truncated > 0) {
      report.warnings.push_back(absl::StrCat(Rows(report.rows_truncated), ": cut to max_length, ",
                                             options_.max_length, " tokens"));
    }
    return std::move(dataset_);
  }

 private:
  static absl::Status AtLine(const absl::Status& status, const std::string& path, int64_t line) {
    const std::string number = absl::StrCat(line);
    return Error(status.code(), ReasonOf(status),
                 absl::StrCat(path, " line ", number, ": ", status.message()),
                 {{"file", path}, {"line", number}});
  }

  absl::Status ReportProgress() const {
    if (!options_.on_progress || dataset_.report.rows_read % kProgressInterval != 0) {
      return absl::OkStatus();
    }
    return options_.on_progress(dataset_.report.rows_read);
  }

  absl::Status AddRow(const nlohmann::ordered_json& row, RowFormat& format) {
    if (format == RowFormat::kAuto) {
      TRAIND_ASSIGN_OR_RETURN(format, DetectRowFormat(row));
    }
    TRAIND_ASSIGN_OR_RETURN(TokenizedRow tokens, tokenizer_.Tokenize(row, format));
    ++dataset_.report.rows_read;
    no_prefix_rows_ += tokens.prompt_is_no_prefix ? 1 : 0;
    no_stop_rows_ += tokens.turn_without_stop_token ? 1 : 0;
    Keep(std::move(tokens.example));
    return absl::OkStatus();
  }

  void Keep(Example example) {
    DatasetReport& report = dataset_.report;
    const bool has_targets = Targets(example) > 0;
    const auto limit = static_cast<size_t>(options_.max_length);
    const bool is_long = example.input_ids.size() > limit;
    if (is_long) {
      example.input_ids.resize(limit);
      example.supervised.resize(limit);
    }
    const int64_t targets = Targets(example);
    if (targets == 0) {
      ++report.rows_dropped[has_targets ? kNoneAfterTruncation : kNoneAtAll];
      return;
    }
    ++report.rows_kept;
    report.rows_truncated += is_long ? 1 : 0;
    report.tokens += static_cast<int64_t>(example.input_ids.size());
    report.supervised_tokens += targets;
    dataset_.examples.push_back(std::move(example));
  }

  absl::Status NothingToTrain() const {
    const DatasetReport& report = dataset_.report;
    const std::string counts =
        absl::StrJoin(report.rows_dropped, ", ", [](std::string* out, const auto& entry) {
          absl::StrAppend(out, entry.first, ": ", entry.second);
        });
    const std::string rows = absl::StrCat(report.rows_read);
    return Error(absl::StatusCode::kFailedPrecondition, Reason::kNoSupervisedTokens,
                 absl::StrCat("none of the ", Rows(report.rows_read), " has a token to train on (",
                              counts, "); raise max_length, which is ", options_.max_length,
                              ", or check that completions and assistant turns are not empty"),
                 {{"rows", rows}, {"dropped", counts}});
  }

  const DatasetOptions& options_;
  RowTokenizer tokenizer_;
  Dataset dataset_;
  int64_t no_prefix_rows_ = 0;
  int64_t no_stop_rows_ = 0;
};

}  // namespace

absl::StatusOr<RowFormat> RowFormatFromName(absl::string_view name) {
  if (name.empty() || name == "auto") return RowFormat::kAuto;
  if (name == "prompt_completion") return RowFormat::kPromptCompletion;
  if (name == "messages") return RowFormat::kMessages;
  if (name == "text") return RowFormat::kText;
  return FieldErrors({{"format", absl::StrCat("`", name,
                                              "` is none of auto, prompt_completion, "
                                              "messages, text")}});
}

absl::StatusOr<LossOn> LossOnFromName(absl::string_view name) {
  if (name.empty()) return LossOn::kDefault;
  if (name == "completion") return LossOn::kCompletion;
  if (name == "all") return LossOn::kAll;
  return FieldErrors({{"loss_on", absl::StrCat("`", name, "` is none of completion, all")}});
}

absl::StatusOr<Dataset> LoadDataset(const std::vector<DataFile>& files, const TextModel& model,
                                    const DatasetOptions& options) {
  if (files.empty()) return FieldErrors({{"dataset", "names no file"}});
  if (options.max_length < 2) {
    return FieldErrors(
        {{"max_length", absl::StrCat("must be at least 2, but is ", options.max_length)}});
  }
  DatasetLoader loader(model, options);
  for (const DataFile& file : files) TRAIND_RETURN_IF_ERROR(loader.Read(file));
  return loader.Finish();
}

}  // namespace traind
