#include "common/jobspec/job_json.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/jobspec/message_reader.h"
#include "common/os/file.h"
#include "common/status/errors.h"

namespace traind::jobspec {
namespace {

// Where the last part of the path `field` begins: at a '.' or a '['.
size_t LastPart(absl::string_view field) {
  const size_t dot = field.find_last_of(".[");
  return dot == absl::string_view::npos ? 0 : dot;
}

}  // namespace

std::string PathInFile(const JobFile& file, absl::string_view field) {
  absl::ConsumePrefix(&field, "job.");
  // The longest part of the path that the file has, and the rest as it is.
  for (size_t end = field.size(); end > 0; end = LastPart(field.substr(0, end))) {
    const auto found = file.written_as.find(std::string(field.substr(0, end)));
    if (found == file.written_as.end()) continue;
    absl::string_view rest = field.substr(end);
    if (found->second.empty()) absl::ConsumePrefix(&rest, ".");
    return absl::StrCat(found->second, rest);
  }
  return std::string(field);
}

absl::StatusOr<JobFile> ParseJob(absl::string_view text, const std::string& file_name,
                                 const std::string& folder) {
  TRAIND_ASSIGN_OR_RETURN(const Json root, ParseJson(text, file_name));
  if (!root.is_object()) {
    return Error(absl::StatusCode::kInvalidArgument, Reason::kInvalidField,
                 absl::StrCat(file_name, ": a job is a JSON object; got ", Excerpt(root)),
                 {{"file", file_name}});
  }
  JobFile file;
  MessageReader reader(&file.job, folder);
  reader.ReadJob(root);
  if (!reader.problems().empty()) return FieldErrors(reader.problems());
  file.written_as = reader.written_as();
  return file;
}

absl::StatusOr<JobFile> ReadJobFile(const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  return ParseJob(text, path, absolute.parent_path().string());
}

}  // namespace traind::jobspec
