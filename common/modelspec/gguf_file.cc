#include "common/modelspec/gguf_file.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/modelspec/model_error.h"
#include "common/status/errors.h"

namespace traind {
namespace {

// More than any real file has; keeps a hostile header from taking all memory.
constexpr uint64_t kMaxMetadata = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 20;
constexpr uint64_t kMaxArray = 1 << 24;
constexpr uint64_t kMaxName = 1 << 16;
constexpr int64_t kDefaultAlignment = 32;
constexpr uint32_t kMaxDimensions = 4;

// The numbers of value types in the file.
enum ValueType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// Sizes as in ggml's ggml-common.h.
constexpr GgmlTypeInfo kGgmlTypes[] = {
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
    {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},
    {21, "IQ3_S", 256, 110},  {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136},
    {24, "I8", 1, 1},         {25, "I16", 1, 2},        {26, "I32", 1, 4},
    {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},
    {39, "MXFP4", 32, 17},
};

bool IsIntegerType(uint32_t type) { return type <= kInt32 || type == kUint64 || type == kInt64; }

}  // namespace

const GgmlTypeInfo* FindGgmlType(uint32_t type) {
  for (const GgmlTypeInfo& info : kGgmlTypes) {
    if (info.type == type) return &info;
  }
  return nullptr;
}

// Reads the bytes from start to end. Each Read… fails instead of passing the end.
class GgufParser {
 public:
  GgufParser(absl::string_view bytes, const std::string& path) : bytes_(bytes) {
    header_.path_ = path;
  }

  absl::StatusOr<GgufHeader> Parse() {
    uint64_t tensor_count = 0;
    uint64_t metadata_count = 0;
    TRAIND_RETURN_IF_ERROR(ReadPreamble(&tensor_count, &metadata_count));
    for (uint64_t i = 0; i < metadata_count; ++i) TRAIND_RETURN_IF_ERROR(ReadMetadata(i));
    TRAIND_RETURN_IF_ERROR(ReadAlignment());
    for (uint64_t i = 0; i < tensor_count; ++i) TRAIND_RETURN_IF_ERROR(ReadTensor(i));
    TRAIND_RETURN_IF_ERROR(LocateData());
    return std::move(header_);
  }

 private:
  absl::Status Invalid(absl::string_view text) const { return ModelInvalid(header_.path_, text); }

  absl::Status Truncated(absl::string_view what) const {
    return Invalid(
        absl::StrCat("damaged GGUF: the file ends at byte ", bytes_.size(), " inside ", what));
  }

  template <typename Number>
  absl::Status Read(Number* out, absl::string_view what) {
    if (bytes_.size() - position_ < sizeof(Number)) return Truncated(what);
    std::memcpy(out, bytes_.data() + position_, sizeof(Number));
    position_ += sizeof(Number);
    return absl::OkStatus();
  }

  absl::Status ReadString(std::string* out, uint64_t limit, absl::string_view what) {
    uint64_t length = 0;
    TRAIND_RETURN_IF_ERROR(Read(&length, what));
    if (length > limit) {
      return Invalid(absl::StrCat("damaged GGUF: ", what, " has a string of ", length, " bytes"));
    }
    if (length > bytes_.size() - position_) return Truncated(what);
    out->assign(bytes_.data() + position_, length);
    position_ += length;
    return absl::OkStatus();
  }

  absl::Status ReadPreamble(uint64_t* tensor_count, uint64_t* metadata_count) {
    if (bytes_.substr(0, 4) != "GGUF") {
      return Invalid("not a GGUF file (it does not begin with \"GGUF\")");
    }
    position_ = 4;
    uint32_t version = 0;
    TRAIND_RETURN_IF_ERROR(Read(&version, "the preamble"));
    if (version != 0 && (version & 0xffff) == 0) return Invalid("big-endian GGUF is not supported");
    if (version != 2 && version != 3) {
      return Invalid(absl::StrCat("GGUF version ", version, " is not supported (2 and 3 are)"));
    }
    TRAIND_RETURN_IF_ERROR(Read(tensor_count, "the preamble"));
    TRAIND_RETURN_IF_ERROR(Read(metadata_count, "the preamble"));
    if (*tensor_count > kMaxTensors || *metadata_count > kMaxMetadata) {
      return Invalid(absl::StrCat("damaged GGUF: it claims ", *tensor_count, " tensors and ",
                                  *metadata_count, " metadata values"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMetadata(uint64_t index) {
    std::string key;
    TRAIND_RETURN_IF_ERROR(ReadString(&key, kMaxName, absl::StrCat("metadata key ", index)));
    uint32_t type = 0;
    TRAIND_RETURN_IF_ERROR(Read(&type, key));
    GgufValue value;
    TRAIND_RETURN_IF_ERROR(type == kArray ? ReadArray(key, &value) : ReadScalar(key, type, &value));
    if (!header_.metadata_.emplace(key, std::move(value)).second) {
      return Invalid(absl::StrCat("damaged GGUF: metadata key \"", key, "\" occurs twice"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadScalar(const std::string& key, uint32_t type, GgufValue* out) {
    if (IsIntegerType(type)) return ReadInto<int64_t>(key, type, out);
    switch (type) {
      case kFloat32:
      case kFloat64:
        return ReadInto<double>(key, type, out);
      case kBool:
        return ReadInto<bool>(key, type, out);
      case kString:
        return ReadInto<std::string>(key, type, out);
      default:
        return Invalid(
            absl::StrCat("damaged GGUF: metadata \"", key, "\" has the unknown type ", type));
    }
  }

  template <typename Value>
  absl::Status ReadInto(const std::string& key, uint32_t type, GgufValue* out) {
    Value value{};
    TRAIND_RETURN_IF_ERROR(ReadElement(key, type, &value));
    *out = std::move(value);
    return absl::OkStatus();
  }

  absl::Status ReadArray(const std::string& key, GgufValue* out) {
    uint32_t type = 0;
    uint64_t count = 0;
    TRAIND_RETURN_IF_ERROR(Read(&type, key));
    TRAIND_RETURN_IF_ERROR(Read(&count, key));
    // Each element takes at least one byte, so a count beyond the rest of the file is a lie.
    if (count > kMaxArray || count > bytes_.size() - position_) {
      return Invalid(
          absl::StrCat("damaged GGUF: metadata \"", key, "\" claims ", count, " elements"));
    }
    if (IsIntegerType(type)) return ReadElements<int64_t>(key, type, count, out);
    switch (type) {
      case kFloat32:
      case kFloat64:
        return ReadElements<double>(key, type, count, out);
      case kBool:
        return ReadElements<bool>(key, type, count, out);
      case kString:
        return ReadElements<std::string>(key, type, count, out);
      default:
        return Invalid(absl::StrCat("GGUF metadata \"", key, "\" is an array of type ", type,
                                    ", which is not supported"));
    }
  }

  template <typename Value>
  absl::Status ReadElements(const std::string& key, uint32_t type, uint64_t count, GgufValue* out) {
    std::vector<Value> values;
    for (uint64_t i = 0; i < count; ++i) {
      Value value{};
      TRAIND_RETURN_IF_ERROR(ReadElement(key, type, &value));
      values.push_back(std::move(value));
    }
    *out = std::move(values);
    return absl::OkStatus();
  }

  template <typename Stored, typename Value>
  absl::Status ReadAs(const std::string& key, Value* out) {
    Stored stored{};
    TRAIND_RETURN_IF_ERROR(Read(&stored, key));
    *out = static_cast<Value>(stored);
    return absl::OkStatus();
  }

  absl::Status ReadElement(const std::string& key, uint32_t type, int64_t* out) {
    switch (type) {
      case kUint8:
        return ReadAs<uint8_t>(key, out);
      case kInt8:
        return ReadAs<int8_t>(key, out);
      case kUint16:
        return ReadAs<uint16_t>(key, out);
      case kInt16:
        return ReadAs<int16_t>(key, out);
      case kUint32:
        return ReadAs<uint32_t>(key, out);
      case kInt32:
        return ReadAs<int32_t>(key, out);
      case kInt64:
        return ReadAs<int64_t>(key, out);
      default:
        return ReadUint64(key, out);
    }
  }

  absl::Status ReadUint64(const std::string& key, int64_t* out) {
    uint64_t value = 0;
    TRAIND_RETURN_IF_ERROR(Read(&value, key));
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return Invalid(absl::StrCat("GGUF metadata \"", key, "\" is too large: ", value));
    }
    *out = static_cast<int64_t>(value);
    return absl::OkStatus();
  }

  absl::Status ReadElement(const std::string& key, uint32_t type, double* out) {
    return type == kFloat32 ? ReadAs<float>(key, out) : ReadAs<double>(key, out);
  }

  absl::Status ReadElement(const std::string& key, uint32_t, bool* out) {
    uint8_t value = 0;
    TRAIND_RETURN_IF_ERROR(Read(&value, key));
    *out = value != 0;
    return absl::OkStatus();
  }

  absl::Status ReadElement(const std::string& key, uint32_t, std::string* out) {
    return ReadString(out, std::numeric_limits<uint64_t>::max(), key);
  }

  absl::Status ReadAlignment() {
    if (!header_.Has("general.alignment")) return absl::OkStatus();
    TRAIND_ASSIGN_OR_RETURN(alignment_, header_.GetInt("general.alignment"));
    const bool power_of_two = alignment_ > 0 && (alignment_ & (alignment_ - 1)) == 0;
    if (!power_of_two || alignment_ > (1 << 20)) {
      return Invalid(absl::StrCat("damaged GGUF: general.alignment ", alignment_,
                                  " is not a power of two up to 2^20"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadTensor(uint64_t index) {
    const std::string what = absl::StrCat("the description of tensor ", index);
    GgufTensor tensor;
    uint32_t dimensions = 0;
    uint64_t offset = 0;
    TRAIND_RETURN_IF_ERROR(ReadString(&tensor.name, kMaxName, what));
    TRAIND_RETURN_IF_ERROR(Read(&dimensions, what));
    if (dimensions == 0 || dimensions > kMaxDimensions) {
      return Invalid(absl::StrCat("damaged GGUF: tensor \"", tensor.name, "\" has ", dimensions,
                                  " dimensions"));
    }
    for (uint32_t i = 0; i < dimensions; ++i) {
      int64_t size = 0;
      TRAIND_RETURN_IF_ERROR(Read(&size, what));
      tensor.shape.insert(tensor.shape.begin(), size);
    }
    TRAIND_RETURN_IF_ERROR(Read(&tensor.type, what));
    TRAIND_RETURN_IF_ERROR(Read(&offset, what));
    if (!names_.insert(tensor.name).second) {
      return Invalid(absl::StrCat("damaged GGUF: tensor \"", tensor.name, "\" occurs twice"));
    }
    offsets_.push_back(offset);
    header_.tensors_.push_back(std::move(tensor));
    return absl::OkStatus();
  }

  // The bytes that a tensor's shape and type take.
  absl::StatusOr<uint64_t> SizeOf(const GgufTensor& tensor) const {
    const GgmlTypeInfo* info = FindGgmlType(tensor.type);
    if (info == nullptr) {
      return Invalid(
          absl::StrCat("tensor \"", tensor.name, "\" has the unknown type ", tensor.type));
    }
    int64_t blocks = 1;
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
      int64_t size = tensor.shape[i];
      const bool is_row = i + 1 == tensor.shape.size();
      const bool whole_blocks = !is_row || size % info->block_size == 0;
      if (is_row) size /= info->block_size;
      if (!whole_blocks || size <= 0 || __builtin_mul_overflow(blocks, size, &blocks)) {
        return Invalid(absl::StrCat("damaged GGUF: tensor \"", tensor.name, "\" has a shape that ",
                                    "type ", info->name, " cannot have"));
      }
    }
    int64_t bytes = 0;
    if (__builtin_mul_overflow(blocks, info->block_bytes, &bytes)) {
      return Invalid(absl::StrCat("damaged GGUF: tensor \"", tensor.name, "\" is too large"));
    }
    return static_cast<uint64_t>(bytes);
  }

  // Sets every tensor's data. The data begins at the next aligned byte.
  absl::Status LocateData() {
    const uint64_t alignment = static_cast<uint64_t>(alignment_);
    const uint64_t start = (position_ + alignment - 1) / alignment * alignment;
    const absl::string_view data = start < bytes_.size() ? bytes_.substr(start) : "";
    std::vector<std::pair<uint64_t, uint64_t>> ranges;
    for (size_t i = 0; i < offsets_.size(); ++i) {
      GgufTensor& tensor = header_.tensors_[i];
      TRAIND_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(tensor));
      if (offsets_[i] % alignment != 0) {
        return Invalid(absl::StrCat("damaged GGUF: tensor \"", tensor.name, "\" is not aligned"));
      }
      if (offsets_[i] > data.size() || size > data.size() - offsets_[i]) {
        return Invalid(absl::StrCat("damaged GGUF: the file ends before tensor \"", tensor.name,
                                    "\" does; fetch it again"));
      }
      tensor.data = data.substr(offsets_[i], size);
      ranges.emplace_back(offsets_[i], offsets_[i] + size);
    }
    return CheckOverlaps(std::move(ranges));
  }

  absl::Status CheckOverlaps(std::vector<std::pair<uint64_t, uint64_t>> ranges) const {
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) {
      if (ranges[i].first < ranges[i - 1].second) {
        return Invalid("damaged GGUF: two tensors overlap");
      }
    }
    return absl::OkStatus();
  }

  absl::string_view bytes_;
  uint64_t position_ = 0;
  int64_t alignment_ = kDefaultAlignment;
  GgufHeader header_;
  std::vector<uint64_t> offsets_;
  std::set<std::string> names_;
};

absl::StatusOr<GgufHeader> GgufHeader::Parse(absl::string_view bytes, const std::string& path) {
  return GgufParser(bytes, path).Parse();
}

template <typename Value>
absl::StatusOr<Value> GgufHeader::Get(const std::string& key, absl::string_view type_name) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    return ModelInvalid(path_, absl::StrCat("GGUF metadata \"", key, "\" is missing"));
  }
  const Value* value = std::get_if<Value>(&found->second);
  if (value == nullptr) {
    return ModelInvalid(path_, absl::StrCat("GGUF metadata \"", key, "\" is not ", type_name));
  }
  return *value;
}

absl::StatusOr<int64_t> GgufHeader::GetInt(const std::string& key) const {
  return Get<int64_t>(key, "an integer");
}

absl::StatusOr<double> GgufHeader::GetDouble(const std::string& key) const {
  return Get<double>(key, "a float");
}

absl::StatusOr<bool> GgufHeader::GetBool(const std::string& key) const {
  return Get<bool>(key, "a bool");
}

absl::StatusOr<std::string> GgufHeader::GetString(const std::string& key) const {
  return Get<std::string>(key, "a string");
}

absl::StatusOr<std::vector<std::string>> GgufHeader::GetStrings(const std::string& key) const {
  return Get<std::vector<std::string>>(key, "an array of strings");
}

absl::StatusOr<std::vector<int64_t>> GgufHeader::GetInts(const std::string& key) const {
  return Get<std::vector<int64_t>>(key, "an array of integers");
}

absl::StatusOr<std::vector<double>> GgufHeader::GetDoubles(const std::string& key) const {
  return Get<std::vector<double>>(key, "an array of floats");
}

absl::StatusOr<GgufFile> GgufFile::Open(const std::string& path) {
  TRAIND_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, Reason::kModelNotFound));
  TRAIND_ASSIGN_OR_RETURN(GgufHeader header, GgufHeader::Parse(file.bytes(), path));
  return GgufFile(std::move(file), std::move(header));
}

}  // namespace traind
