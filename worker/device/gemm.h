// Matrix products in fp32.
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace traind {

// A matrix in someone else's memory. One of the strides is 1.
struct ConstMatrix {
  const float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;  // From one row to the next, in floats.
  int64_t col_stride = 1;

  ConstMatrix Transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

// Row-major: the distance of columns is 1.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;

  operator ConstMatrix() const { return {data, rows, cols, row_stride, 1}; }
  ConstMatrix Transposed() const { return ConstMatrix(*this).Transposed(); }
};

// A row-major matrix without gaps.
inline ConstMatrix RowMajor(const float* data, int64_t rows, int64_t cols) {
  return {data, rows, cols, cols, 1};
}
inline Matrix RowMajor(float* data, int64_t rows, int64_t cols) { return {data, rows, cols, cols}; }

// Who multiplies.
enum class GemmBackend {
  kOwn,       // AVX2 kernel of this project.
  kLibTorch,  // The BLAS (MKL) inside LibTorch; faster on Intel processors with AVX-512.
};

// By the processor alone, never by a timing: the same machine always gives the same bits.
GemmBackend DefaultGemmBackend();

// C = alpha A B, plus C if `accumulate`, by DefaultGemmBackend(). REQUIRES: shapes fit; C overlaps
// neither A nor B. Runs on all OpenMP threads; each number of C is summed by one thread in a fixed
// order.
void Gemm(const ConstMatrix& a, const ConstMatrix& b, float alpha, bool accumulate,
          const Matrix& c);

// The same by a chosen backend.
void GemmWith(GemmBackend backend, const ConstMatrix& a, const ConstMatrix& b, float alpha,
              bool accumulate, const Matrix& c);

// FAILED_PRECONDITION if the processor lacks what the kernels were compiled for (x86-64-v3: AVX2,
// FMA). To be asked before anything else of worker/device.
absl::Status CheckProcessor();

}  // namespace traind
