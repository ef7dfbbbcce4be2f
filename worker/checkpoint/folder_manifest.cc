#include "worker/checkpoint/folder_manifest.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/os/file.h"
#include "common/os/sha256.h"
#include "common/status/errors.h"

namespace traind {
namespace {

using nlohmann::json;

constexpr int64_t kFormatVersion = 1;
constexpr char kTimeFormat[] = "%Y-%m-%dT%H:%M:%E3SZ";

std::string HashOf(absl::string_view bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Hex();
}

absl::StatusOr<ManifestFile> Describe(const std::string& folder, const std::string& name) {
  TRAIND_ASSIGN_OR_RETURN(const MappedFile file,
                          MappedFile::Open(absl::StrCat(folder, "/", name), Reason::kOutputFailed));
  return ManifestFile{name, static_cast<int64_t>(file.bytes().size()), HashOf(file.bytes())};
}

bool ReadText(const json& object, const char* key, std::string* out) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  *out = found->get<std::string>();
  return true;
}

bool ReadCount(const json& object, const char* key, int64_t* out) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  *out = found->get<int64_t>();
  return *out >= 0;
}

bool ReadFiles(const json& object, std::vector<ManifestFile>* files) {
  const auto found = object.find("files");
  if (found == object.end() || !found->is_array() || found->empty()) return false;
  for (const json& entry : *found) {
    ManifestFile file;
    if (!entry.is_object() || !ReadText(entry, "path", &file.path) ||
        !ReadCount(entry, "size_bytes", &file.size_bytes) ||
        !ReadText(entry, "sha256", &file.sha256) || absl::StrContains(file.path, '/')) {
      return false;
    }
    files->push_back(std::move(file));
  }
  return true;
}

bool ReadFields(const json& object, FolderManifest* manifest) {
  int64_t version = 0;
  std::string time;
  return object.is_object() && ReadCount(object, "format_version", &version) &&
         version == kFormatVersion && ReadCount(object, "step", &manifest->step) &&
         ReadText(object, "run_id", &manifest->run_id) && ReadText(object, "create_time", &time) &&
         absl::ParseTime(kTimeFormat, time, &manifest->create_time, nullptr) &&
         ReadFiles(object, &manifest->files);
}

}  // namespace

int64_t FolderManifest::size_bytes() const {
  int64_t size = 0;
  for (const ManifestFile& file : files) size += file.size_bytes;
  return size;
}

absl::Status CheckpointCorrupt(const std::string& path, absl::string_view text) {
  return Error(absl::StatusCode::kDataLoss, Reason::kCheckpointCorrupt,
               absl::StrCat(path, ": ", text), {{"path", path}});
}

absl::Status WriteManifest(const std::string& folder, FolderManifest& manifest) {
  TRAIND_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(folder));
  json files = json::array();
  manifest.files.clear();
  for (const std::string& name : names) {
    TRAIND_ASSIGN_OR_RETURN(const ManifestFile file, Describe(folder, name));
    files.push_back({{"path", name}, {"size_bytes", file.size_bytes}, {"sha256", file.sha256}});
    manifest.files.push_back(file);
  }
  const json object = {
      {"format_version", kFormatVersion},
      {"step", manifest.step},
      {"run_id", manifest.run_id},
      {"create_time", absl::FormatTime(kTimeFormat, manifest.create_time, absl::UTCTimeZone())},
      {"files", std::move(files)}};
  return WriteFileAtomically(absl::StrCat(folder, "/", kManifestFile), object.dump(2) + "\n");
}

absl::StatusOr<FolderManifest> ReadManifest(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kManifestFile);
  if (!FileExists(path)) return CheckpointCorrupt(folder, "it has no manifest.json");
  TRAIND_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, Reason::kCheckpointCorrupt));
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  FolderManifest manifest;
  if (ReadFields(object, &manifest)) return manifest;
  return CheckpointCorrupt(folder, "its manifest.json is damaged or of another format_version");
}

absl::Status CheckFiles(const std::string& folder, const FolderManifest& manifest, bool hashes) {
  for (const ManifestFile& file : manifest.files) {
    const std::string path = absl::StrCat(folder, "/", file.path);
    if (!FileExists(path)) return CheckpointCorrupt(folder, absl::StrCat(file.path, " is missing"));
    TRAIND_ASSIGN_OR_RETURN(const MappedFile mapped,
                            MappedFile::Open(path, Reason::kCheckpointCorrupt));
    if (static_cast<int64_t>(mapped.bytes().size()) != file.size_bytes) {
      return CheckpointCorrupt(folder, absl::StrCat(file.path, " has ", mapped.bytes().size(),
                                                    " bytes, the manifest says ", file.size_bytes));
    }
    if (hashes && HashOf(mapped.bytes()) != file.sha256) {
      return CheckpointCorrupt(folder,
                               absl::StrCat(file.path, " does not have the manifest's SHA-256"));
    }
  }
  return absl::OkStatus();
}

}  // namespace traind
