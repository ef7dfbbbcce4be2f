// Dropout whose mask is a function of a key and a place, so that it need not be stored.
#pragma once

#include <cstdint>

namespace traind::cpu {

struct DropoutMask {
  uint64_t key = 0;        // Another key, another mask.
  double probability = 0;  // Share of the elements that become zero; [0, 1).
};

// A key that depends on both numbers, for one key per module from one per step.
uint64_t DeriveKey(uint64_t key, uint64_t number);

// True if the mask keeps element (row, col). The kernels below agree with it.
bool Keeps(const DropoutMask& mask, int64_t row, int64_t col);

// y = kept x / (1 - probability), else 0; both [rows, cols].
void ApplyDropout(const DropoutMask& mask, const float* x, int64_t rows, int64_t cols, float* y);

// dx += kept dy / (1 - probability).
void AddDropoutBackward(const DropoutMask& mask, const float* dy, int64_t rows, int64_t cols,
                        float* dx);

}  // namespace traind::cpu
