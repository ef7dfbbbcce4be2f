#include "worker/device/cpu/dropout.h"

#include "worker/device/cpu/parallel.h"

namespace traind::cpu {
namespace {

// Well-mixed 64 bits of a counter (the finaliser of SplitMix64).
uint64_t Mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint32_t RowKey(const DropoutMask& mask, int64_t row) {
  return static_cast<uint32_t>(DeriveKey(mask.key, static_cast<uint64_t>(row)));
}

// 32 bits of one element: two rounds of multiply and xor-shift, which vectorise.
uint32_t ElementBits(uint32_t row_key, uint32_t col) {
  uint32_t x = row_key + col * 0x9e3779b1u;
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

// Elements with bits below this are dropped.
uint32_t Threshold(const DropoutMask& mask) {
  return static_cast<uint32_t>(mask.probability * 0x1p32);
}

float KeptScale(const DropoutMask& mask) { return static_cast<float>(1 / (1 - mask.probability)); }

}  // namespace

uint64_t DeriveKey(uint64_t key, uint64_t number) { return Mix64(key ^ Mix64(number)); }

bool Keeps(const DropoutMask& mask, int64_t row, int64_t col) {
  return ElementBits(RowKey(mask, row), static_cast<uint32_t>(col)) >= Threshold(mask);
}

void ApplyDropout(const DropoutMask& mask, const float* x, int64_t rows, int64_t cols, float* y) {
  const uint32_t threshold = Threshold(mask);
  const float scale = KeptScale(mask);
#pragma omp parallel for schedule(static) if (WorthThreads(16 * rows * cols))
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t key = RowKey(mask, row);
    const float* in = x + row * cols;
    float* out = y + row * cols;
#pragma omp simd
    for (int64_t col = 0; col < cols; ++col) {
      const float factor = ElementBits(key, static_cast<uint32_t>(col)) >= threshold ? scale : 0;
      out[col] = in[col] * factor;
    }
  }
}

void AddDropoutBackward(const DropoutMask& mask, const float* dy, int64_t rows, int64_t cols,
                        float* dx) {
  const uint32_t threshold = Threshold(mask);
  const float scale = KeptScale(mask);
#pragma omp parallel for schedule(static) if (WorthThreads(16 * rows * cols))
  for (int64_t row = 0; row < rows; ++row) {
    const uint32_t key = RowKey(mask, row);
    const float* gradient = dy + row * cols;
    float* out = dx + row * cols;
#pragma omp simd
    for (int64_t col = 0; col < cols; ++col) {
      const float factor = ElementBits(key, static_cast<uint32_t>(col)) >= threshold ? scale : 0;
      out[col] += gradient[col] * factor;
    }
  }
}

}  // namespace traind::cpu
