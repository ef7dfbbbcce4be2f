// GGUF files that a test puts together number by number.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace traind {

// Appends in the file's order: metadata, then tensors, then WithData.
class GgufBytes {
 public:
  GgufBytes(uint64_t tensors, uint64_t metadata) {
    bytes_ = "GGUF";
    Add<uint32_t>(3).Add(tensors).Add(metadata);
  }

  template <typename Number>
  GgufBytes& Add(Number number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
    return *this;
  }

  GgufBytes& AddString(const std::string& text) {
    Add<uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }

  GgufBytes& AddUint32(const std::string& key, uint32_t value) {
    return AddString(key).Add<uint32_t>(4).Add(value);
  }

  GgufBytes& AddFloat(const std::string& key, float value) {
    return AddString(key).Add<uint32_t>(6).Add(value);
  }

  GgufBytes& AddText(const std::string& key, const std::string& value) {
    return AddString(key).Add<uint32_t>(8).AddString(value);
  }

  // A matrix; `columns` is ggml's first dimension.
  GgufBytes& AddTensor(const std::string& name, int64_t columns, int64_t rows, uint32_t type,
                       uint64_t offset) {
    return AddString(name).Add<uint32_t>(2).Add(columns).Add(rows).Add(type).Add(offset);
  }

  // Pads to the data section and adds `size` zeros.
  std::string WithData(size_t size) const {
    return bytes_ + std::string((32 - bytes_.size() % 32) % 32 + size, '\0');
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace traind
