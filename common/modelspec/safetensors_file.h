// safetensors files: header, tensors, writer. No LibTorch.
//
// The format is that of the safetensors project: a little-endian u64 with the length of a JSON
// header, the header, the data without holes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/os/file.h"

namespace traind {

struct SafetensorsTensor {
  std::string dtype;  // As in the file, such as `BF16`.
  std::vector<int64_t> shape;
  absl::string_view data;  // Borrowed from the parsed bytes; its size fits shape and dtype.
};

// What a safetensors file says. Borrows from the parsed bytes. Thread-safe.
class SafetensorsHeader {
 public:
  // `path` only names the file in messages. Errors: MODEL_INVALID, saying what is wrong: too
  // short, a header that is no JSON, a dtype that is not known, a size that does not fit shape and
  // dtype, holes, overlaps, bytes left over.
  static absl::StatusOr<SafetensorsHeader> Parse(absl::string_view bytes, const std::string& path);

  const std::map<std::string, SafetensorsTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  friend class SafetensorsParser;
  std::map<std::string, SafetensorsTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// A safetensors file in memory. Thread-safe.
class SafetensorsFile {
 public:
  // Errors: MODEL_NOT_FOUND if the file cannot be opened, MODEL_INVALID.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const SafetensorsHeader& header() const { return header_; }

 private:
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  MappedFile file_;
  SafetensorsHeader header_;
};

// A float32 tensor to write. `values` is borrowed.
struct SafetensorsEntry {
  std::string name;
  std::vector<int64_t> shape;
  absl::Span<const float> values;
};

// Writes float32 tensors, sorted by name, with the metadata that Transformers asks for
// ({"format": "pt"}), and fsyncs. REQUIRES: names differ, values fit shapes. Errors:
// RESOURCE_EXHAUSTED (DISK_FULL) and others with `reason`; the file is then incomplete.
// Fault point: safetensors.after_tensor.
absl::Status WriteSafetensors(const std::string& path, std::vector<SafetensorsEntry> tensors,
                              Reason reason = Reason::kOutputFailed);

}  // namespace traind
