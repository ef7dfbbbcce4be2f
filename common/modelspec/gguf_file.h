// GGUF files: metadata and the table of tensors. No LibTorch.
//
// The format is that of ggml's docs/gguf.md, versions 2 and 3, little-endian. The file is input
// from outside: every count, length and offset is checked before it is used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/os/file.h"

namespace traind {

// One metadata value. Integers of all widths become int64_t, floats become double.
using GgufValue = std::variant<int64_t, double, bool, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<bool>, std::vector<std::string>>;

// ggml's numbers for the types of tensors that traind reads.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ8_0 = 8,
  kBF16 = 30,
};

// How a tensor type is stored: `block_bytes` bytes hold `block_size` numbers.
struct GgmlTypeInfo {
  uint32_t type = 0;
  absl::string_view name;
  int64_t block_size = 0;
  int64_t block_bytes = 0;
};

// Null if ggml has no such type.
const GgmlTypeInfo* FindGgmlType(uint32_t type);

struct GgufTensor {
  std::string name;            // As in the file, such as `blk.0.attn_q.weight`.
  std::vector<int64_t> shape;  // Row-major: the last one is contiguous (the file's order reversed).
  uint32_t type = 0;
  absl::string_view data;  // Borrowed from the parsed bytes; its size fits shape and type.
};

// What a GGUF file says, without its weights. Borrows from the parsed bytes. Thread-safe.
class GgufHeader {
 public:
  // `path` only names the file in messages. Errors: MODEL_INVALID, saying what is wrong.
  static absl::StatusOr<GgufHeader> Parse(absl::string_view bytes, const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, GgufValue>& metadata() const { return metadata_; }
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

  bool Has(const std::string& key) const { return metadata_.count(key) != 0; }

  // The value of `key`; MODEL_INVALID if it is missing or of another type.
  absl::StatusOr<int64_t> GetInt(const std::string& key) const;
  absl::StatusOr<double> GetDouble(const std::string& key) const;
  absl::StatusOr<bool> GetBool(const std::string& key) const;
  absl::StatusOr<std::string> GetString(const std::string& key) const;
  absl::StatusOr<std::vector<std::string>> GetStrings(const std::string& key) const;
  absl::StatusOr<std::vector<int64_t>> GetInts(const std::string& key) const;
  absl::StatusOr<std::vector<double>> GetDoubles(const std::string& key) const;

 private:
  friend class GgufParser;
  template <typename Value>
  absl::StatusOr<Value> Get(const std::string& key, absl::string_view type_name) const;

  std::string path_;
  std::map<std::string, GgufValue> metadata_;
  std::vector<GgufTensor> tensors_;
};

// A GGUF file in memory. Thread-safe.
class GgufFile {
 public:
  // Errors: MODEL_NOT_FOUND if the file cannot be opened, MODEL_INVALID.
  static absl::StatusOr<GgufFile> Open(const std::string& path);

  const GgufHeader& header() const { return header_; }

 private:
  GgufFile(MappedFile file, GgufHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  MappedFile file_;
  GgufHeader header_;
};

}  // namespace traind
