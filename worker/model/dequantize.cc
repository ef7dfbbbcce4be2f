#include "worker/model/dequantize.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace traind {
namespace {

constexpr size_t kBlockSize = 32;

template <typename Number>
Number Load(const char* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

float Bfloat16ToFloat(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Exponent and mantissa moved into place are the number times 2^-112, subnormals included.
float HalfToFloat(uint16_t bits) {
  const uint32_t sign = (bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // Infinity and NaN.
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

void ConvertFloat16(const char* bytes, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = HalfToFloat(Load<uint16_t>(bytes + 2 * i));
}

void ConvertBfloat16(const char* bytes, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = Bfloat16ToFloat(Load<uint16_t>(bytes + 2 * i));
}

void ConvertQ8Block(const char* block, float* out) {
  const float d = HalfToFloat(Load<uint16_t>(block));
  for (size_t i = 0; i < kBlockSize; ++i) out[i] = d * Load<int8_t>(block + 2 + i);
}

// w = d q + m for 16 bytes of 4-bit numbers.
void ConvertNibbles(const char* packed, float d, float m, float* out) {
  for (size_t i = 0; i < kBlockSize / 2; ++i) {
    const uint8_t pair = Load<uint8_t>(packed + i);
    out[i] = d * static_cast<float>(pair & 15) + m;
    out[i + kBlockSize / 2] = d * static_cast<float>(pair >> 4) + m;
  }
}

void ConvertQ4_0Block(const char* block, float* out) {
  const float d = HalfToFloat(Load<uint16_t>(block));
  ConvertNibbles(block + 2, d, -8 * d, out);
}

void ConvertQ4_1Block(const char* block, float* out) {
  const float d = HalfToFloat(Load<uint16_t>(block));
  const float m = HalfToFloat(Load<uint16_t>(block + 2));
  ConvertNibbles(block + 4, d, m, out);
}

template <typename ConvertBlock>
void ConvertBlocks(ConvertBlock convert, size_t block_bytes, const char* bytes,
                   absl::Span<float> out) {
  for (size_t i = 0; i < out.size() / kBlockSize; ++i) {
    convert(bytes + i * block_bytes, out.data() + i * kBlockSize);
  }
}

}  // namespace

void ConvertToFloat32(NumberFormat format, absl::string_view bytes, absl::Span<float> out) {
  switch (format) {
    case NumberFormat::kFloat32:
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(float));
      return;
    case NumberFormat::kFloat16:
      return ConvertFloat16(bytes.data(), out);
    case NumberFormat::kBfloat16:
      return ConvertBfloat16(bytes.data(), out);
    case NumberFormat::kQ8_0:
      return ConvertBlocks(ConvertQ8Block, 34, bytes.data(), out);
    case NumberFormat::kQ4_0:
      return ConvertBlocks(ConvertQ4_0Block, 18, bytes.data(), out);
    case NumberFormat::kQ4_1:
      return ConvertBlocks(ConvertQ4_1Block, 20, bytes.data(), out);
  }
}

}  // namespace traind
