// The inner part of matrix products: panels of B against rows of A, on one thread.
#pragma once

#include <cstdint>

#include "worker/device/gemm.h"

namespace traind::cpu {

inline constexpr int64_t kPanelCols = 16;  // Two AVX registers.
inline constexpr int64_t kTileRows = 6;    // 6 x 2 sums fill 12 of the 16 registers.

inline int64_t RoundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Floats that PackPanels needs for `depth` rows and `cols` columns.
inline int64_t PanelFloats(int64_t depth, int64_t cols) {
  return depth * RoundUp(cols, kPanelCols);
}

// Copies B [depth, cols] into panels of 16 columns: panel p is [panel_depth, 16] at
// panels + p * panel_depth * 16, of which the first B.rows rows are written. Missing columns of
// the last panel are zero. REQUIRES: `panels` is 32-byte aligned, panel_depth >= B.rows.
void PackPanels(const ConstMatrix& b, int64_t panel_depth, float* panels);

// B as PackPanels left it.
struct Panels {
  const float* data = nullptr;
  int64_t depth = 0;  // panel_depth; a product reads the first A.cols rows.
};

// C = alpha A B, plus C if `accumulate`. Writes exactly C.rows x C.cols numbers.
void MultiplyPanels(const ConstMatrix& a, const Panels& b, float alpha, bool accumulate,
                    const Matrix& c);

// A piece of scratch memory of this thread, 64-byte aligned, valid until the next call on it.
float* ThreadScratch(int64_t floats);

// Gemm with the own kernel.
void OwnGemm(const ConstMatrix& a, const ConstMatrix& b, float alpha, bool accumulate,
             const Matrix& c);

}  // namespace traind::cpu
