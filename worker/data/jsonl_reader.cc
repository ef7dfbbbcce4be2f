#include "worker/data/jsonl_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/jobspec/json_document.h"
#include "common/status/errors.h"

namespace traind {
namespace {

constexpr size_t kReadSize = size_t{256} << 10;
constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

absl::Status OpenError(int error_number, const std::string& path) {
  if (error_number == ENOENT) {
    return Error(absl::StatusCode::kNotFound, Reason::kDatasetNotFound,
                 absl::StrCat("the data file ", path, " does not exist"), {{"file", path}});
  }
  return ErrnoError(error_number, Reason::kDatasetInvalid, "cannot read the data file", path);
}

bool IsBlank(absl::string_view line) {
  return line.find_first_not_of(" \t\r") == absl::string_view::npos;
}

}  // namespace

absl::StatusOr<JsonlReader> JsonlReader::Open(const std::string& path, int64_t max_row_bytes) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return OpenError(errno, path);
  JsonlReader reader(descriptor, path, static_cast<size_t>(max_row_bytes));
  struct stat info;
  if (fstat(descriptor, &info) != 0) return OpenError(errno, path);
  if (S_ISDIR(info.st_mode)) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kDatasetInvalid,
                 absl::StrCat(path, " is a folder; name the JSON Lines file in it"),
                 {{"file", path}});
  }
  TRAIND_RETURN_IF_ERROR(reader.CheckStart());
  return reader;
}

JsonlReader::JsonlReader(JsonlReader&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      max_row_bytes_(other.max_row_bytes_),
      buffer_(std::move(other.buffer_)),
      position_(other.position_),
      line_(std::move(other.line_)),
      line_number_(other.line_number_) {}

JsonlReader::~JsonlReader() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<std::optional<JsonlRow>> JsonlReader::Next() {
  while (true) {
    TRAIND_ASSIGN_OR_RETURN(const bool found, ReadLine());
    if (!found) return std::nullopt;
    if (IsBlank(line_)) continue;
    TRAIND_ASSIGN_OR_RETURN(JsonlRow row, ParseLine());
    return std::optional<JsonlRow>(std::move(row));
  }
}

absl::Status JsonlReader::CheckStart() {
  TRAIND_RETURN_IF_ERROR(FillBuffer());
  if (absl::StartsWith(buffer_, "\xFF\xFE") || absl::StartsWith(buffer_, "\xFE\xFF")) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kDatasetInvalid,
                 absl::StrCat(path_,
                              " is not UTF-8 (UTF-16 byte-order mark); convert it, for "
                              "instance with iconv -f UTF-16 -t UTF-8"),
                 {{"file", path_}});
  }
  if (absl::StartsWith(buffer_, kByteOrderMark)) position_ = kByteOrderMark.size();
  return absl::OkStatus();
}

absl::Status JsonlReader::FillBuffer() {
  buffer_.resize(kReadSize);
  position_ = 0;
  ssize_t count;
  do {
    count = read(descriptor_, buffer_.data(), buffer_.size());
  } while (count < 0 && errno == EINTR);
  buffer_.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return count < 0 ? OpenError(errno, path_) : absl::OkStatus();
}

absl::StatusOr<bool> JsonlReader::ReadLine() {
  line_.clear();
  ++line_number_;
  while (true) {
    if (position_ == buffer_.size()) {
      TRAIND_RETURN_IF_ERROR(FillBuffer());
      if (buffer_.empty()) return !line_.empty();
    }
    const size_t end = buffer_.find('\n', position_);
    const bool complete = end != std::string::npos;
    const size_t stop = complete ? end : buffer_.size();
    line_.append(buffer_, position_, stop - position_);
    position_ = complete ? stop + 1 : stop;
    if (line_.size() > max_row_bytes_) {
      return Invalid(
          absl::StrCat(" is longer than ", max_row_bytes_, " bytes, the limit for a row"));
    }
    if (complete) return true;
  }
}

absl::StatusOr<JsonlRow> JsonlReader::ParseLine() const {
  absl::string_view line = line_;
  absl::ConsumeSuffix(&line, "\r");
  if (absl::StartsWith(line, kByteOrderMark)) {
    return Invalid(": a byte-order mark may only stand at the start of the file; remove it");
  }
  auto value = jobspec::ParseJson(line, "");
  if (!value.ok()) {
    const std::string column = MetadataOf(value.status(), "column");
    absl::string_view why = value.status().message();
    if (!column.empty()) absl::ConsumePrefix(&why, absl::StrCat(":1:", column));
    return Invalid(column.empty() ? std::string(why) : absl::StrCat(" column ", column, why));
  }
  if (!value->is_object()) {
    return Invalid(absl::StrCat(": a row must be a JSON object, but this is ", value->type_name()));
  }
  return JsonlRow{line_number_, *std::move(value)};
}

absl::Status JsonlReader::Invalid(absl::string_view why) const {
  const std::string line = absl::StrCat(line_number_);
  return Error(absl::StatusCode::kInvalidArgument, Reason::kDatasetInvalid,
               absl::StrCat(path_, " line ", line, why), {{"file", path_}, {"line", line}});
}

}  // namespace traind
