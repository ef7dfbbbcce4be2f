#include "server/artifacts/checkpoint_manifest.h"

#include <google/protobuf/util/time_util.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/errors.h"

namespace traind::artifacts {
namespace {

using Json = nlohmann::json;

constexpr int kFormatVersion = 1;
constexpr size_t kSha256HexBytes = 64;

absl::Status Corrupt(absl::string_view path, absl::string_view what) {
  return Error(absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
               absl::StrCat(path, ": ", what, "; use another checkpoint"),
               {{"path", path}, {"problem", what}});
}

bool ReadText(const Json& object, const char* key, std::string* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  *value = found->get<std::string>();
  return true;
}

bool ReadCount(const Json& object, const char* key, int64_t* value) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  *value = found->get<int64_t>();
  return *value >= 0;
}

bool IsPlainName(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, '/');
}

absl::Status AddFile(const Json& entry, const std::string& path, v1::Checkpoint* checkpoint) {
  v1::CheckpointFile& file = *checkpoint->add_files();
  int64_t size = 0;
  if (!entry.is_object() || !ReadText(entry, "path", file.mutable_path()) ||
      !ReadText(entry, "sha256", file.mutable_sha256()) || !ReadCount(entry, "size_bytes", &size)) {
    return Corrupt(path, "a file has no path, size_bytes or sha256");
  }
  if (!IsPlainName(file.path())) return Corrupt(path, "a file's path is not a plain name");
  if (file.sha256().size() != kSha256HexBytes) {
    return Corrupt(path, "a file's sha256 does not have 64 digits");
  }
  file.set_size_bytes(size);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::Checkpoint> ParseManifest(absl::string_view json, const std::string& path) {
  const Json root = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return Corrupt(path, "is not a JSON object");
  int64_t version = 0;
  if (!ReadCount(root, "format_version", &version) || version != kFormatVersion) {
    return Corrupt(path, absl::StrCat("has another format_version than ", kFormatVersion));
  }
  v1::Checkpoint checkpoint;
  int64_t step = 0;
  std::string create_time;
  if (!ReadCount(root, "step", &step) || !ReadText(root, "create_time", &create_time) ||
      !google::protobuf::util::TimeUtil::FromString(create_time,
                                                    checkpoint.mutable_create_time())) {
    return Corrupt(path, "has no step or no create_time");
  }
  checkpoint.set_step(step);
  const auto files = root.find("files");
  if (files == root.end() || !files->is_array() || files->empty()) {
    return Corrupt(path, "lists no files");
  }
  for (const Json& entry : *files) TRAIND_RETURN_IF_ERROR(AddFile(entry, path, &checkpoint));
  return checkpoint;
}

}  // namespace traind::artifacts
