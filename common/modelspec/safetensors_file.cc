#include "common/modelspec/safetensors_file.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/modelspec/json_object.h"
#include "common/modelspec/model_error.h"
#include "common/os/fault_point.h"
#include "common/status/errors.h"

namespace traind {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // The safetensors project's own limit.
constexpr size_t kHeaderAlignment = 8;

// Zero if the dtype is not known.
int64_t DtypeBytes(absl::string_view dtype) {
  static const auto* const kSizes = new std::map<absl::string_view, int64_t>{
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},     {"I32", 4},
      {"F32", 4},  {"C64", 8}, {"F64", 8}, {"I64", 8},     {"U64", 8}};
  const auto found = kSizes->find(dtype);
  return found == kSizes->end() ? 0 : found->second;
}

}  // namespace

class SafetensorsParser {
 public:
  SafetensorsParser(absl::string_view bytes, const std::string& path)
      : bytes_(bytes), path_(path) {}

  absl::StatusOr<SafetensorsHeader> Parse() {
    uint64_t length = 0;
    if (bytes_.size() < sizeof length) return Damaged("it has only ", bytes_.size(), " bytes");
    std::memcpy(&length, bytes_.data(), sizeof length);
    if (length > kMaxHeaderBytes || length > bytes_.size() - sizeof length) {
      return Damaged("its header should have ", length, " bytes, the file has ", bytes_.size());
    }
    TRAIND_ASSIGN_OR_RETURN(const nlohmann::json header,
                            ParseJsonObject(bytes_.substr(sizeof length, length), path_));
    data_ = bytes_.substr(sizeof length + length);
    for (const auto& [name, value] : header.items()) {
      TRAIND_RETURN_IF_ERROR(name == "__metadata__" ? ReadMetadata(value)
                                                    : ReadTensor(name, value));
    }
    TRAIND_RETURN_IF_ERROR(CheckCoverage());
    return std::move(header_);
  }

 private:
  template <typename... Parts>
  absl::Status Damaged(const Parts&... parts) const {
    return ModelInvalid(path_, absl::StrCat("damaged safetensors file: ", parts...));
  }

  absl::Status ReadMetadata(const nlohmann::json& value) {
    if (!value.is_object()) return Damaged("__metadata__ is not an object");
    for (const auto& [key, text] : value.items()) {
      if (!text.is_string()) return Damaged("__metadata__ ", key, " is not a string");
      header_.metadata_[key] = text.get<std::string>();
    }
    return absl::OkStatus();
  }

  absl::Status ReadTensor(const std::string& name, const nlohmann::json& value) {
    SafetensorsTensor tensor;
    uint64_t begin = 0;
    uint64_t end = 0;
    if (!value.is_object() || value.size() != 3 || !ReadDtype(value, &tensor.dtype) ||
        !ReadShape(value, &tensor.shape) || !ReadOffsets(value, &begin, &end)) {
      return Damaged("tensor \"", name, "\" is not described by dtype, shape and data_offsets");
    }
    int64_t size = DtypeBytes(tensor.dtype);
    if (size == 0) return Damaged("tensor \"", name, "\" has the unknown dtype ", tensor.dtype);
    for (const int64_t dimension : tensor.shape) {
      if (__builtin_mul_overflow(size, dimension, &size)) {
        return Damaged("tensor \"", name, "\" is too large");
      }
    }
    if (begin > end || end - begin != static_cast<uint64_t>(size)) {
      return Damaged("tensor \"", name, "\" lies at [", begin, ", ", end,
                     "), but its shape and dtype take ", size, " bytes");
    }
    if (end > data_.size()) {
      return Damaged("tensor \"", name, "\" ends at byte ", end, " of the data, which has ",
                     data_.size(), "; fetch the file again");
    }
    tensor.data = data_.substr(begin, end - begin);
    ranges_.emplace_back(begin, end);
    header_.tensors_.emplace(name, std::move(tensor));
    return absl::OkStatus();
  }

  static bool ReadDtype(const nlohmann::json& value, std::string* dtype) {
    const auto found = value.find("dtype");
    if (found == value.end() || !found->is_string()) return false;
    *dtype = found->get<std::string>();
    return true;
  }

  static bool ReadShape(const nlohmann::json& value, std::vector<int64_t>* shape) {
    const auto found = value.find("shape");
    if (found == value.end() || !found->is_array()) return false;
    for (const auto& dimension : *found) {
      if (!dimension.is_number_unsigned()) return false;
      shape->push_back(dimension.get<int64_t>());
      if (shape->back() < 0) return false;
    }
    return true;
  }

  static bool ReadOffsets(const nlohmann::json& value, uint64_t* begin, uint64_t* end) {
    const auto found = value.find("data_offsets");
    if (found == value.end() || !found->is_array() || found->size() != 2) return false;
    if (!(*found)[0].is_number_unsigned() || !(*found)[1].is_number_unsigned()) return false;
    *begin = (*found)[0].get<uint64_t>();
    *end = (*found)[1].get<uint64_t>();
    return true;
  }

  // Every byte of the data belongs to exactly one tensor.
  absl::Status CheckCoverage() {
    std::sort(ranges_.begin(), ranges_.end());
    uint64_t covered = 0;
    for (const auto& [begin, end] : ranges_) {
      if (begin != covered) {
        return Damaged("its tensors ", begin < covered ? "overlap" : "leave a hole", " at byte ",
                       begin < covered ? begin : covered, " of the data");
      }
      covered = end;
    }
    if (covered == data_.size()) return absl::OkStatus();
    return Damaged(data_.size() - covered, " bytes after the last tensor belong to none");
  }

  absl::string_view bytes_;
  const std::string& path_;
  absl::string_view data_;
  SafetensorsHeader header_;
  std::vector<std::pair<uint64_t, uint64_t>> ranges_;
};

absl::StatusOr<SafetensorsHeader> SafetensorsHeader::Parse(absl::string_view bytes,
                                                           const std::string& path) {
  return SafetensorsParser(bytes, path).Parse();
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, Reason::kModelNotFound));
  TRAIND_ASSIGN_OR_RETURN(SafetensorsHeader header, SafetensorsHeader::Parse(file.bytes(), path));
  return SafetensorsFile(std::move(file), std::move(header));
}

namespace {

// The length and the JSON header, padded with spaces so that the data is aligned.
std::string MakeHeader(const std::vector<SafetensorsEntry>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"]["format"] = "pt";
  size_t offset = 0;
  for (const SafetensorsEntry& tensor : tensors) {
    const size_t end = offset + tensor.values.size() * sizeof(float);
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace

absl::Status WriteSafetensors(const std::string& path, std::vector<SafetensorsEntry> tensors,
                              Reason reason) {
  std::sort(tensors.begin(), tensors.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  TRAIND_ASSIGN_OR_RETURN(FileWriter writer, FileWriter::Create(path, reason));
  TRAIND_RETURN_IF_ERROR(writer.Append(MakeHeader(tensors)));
  for (const SafetensorsEntry& tensor : tensors) {
    TRAIND_RETURN_IF_ERROR(writer.Append({reinterpret_cast<const char*>(tensor.values.data()),
                                          tensor.values.size() * sizeof(float)}));
    TRAIND_RETURN_IF_ERROR(FaultPoint("safetensors.after_tensor"));
  }
  return writer.Close();
}

}  // namespace traind
