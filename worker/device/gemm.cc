#include "worker/device/gemm.h"

#include "common/status/errors.h"
#include "worker/device/cpu/gemm_kernel.h"

// BLAS's single-precision product, column-major; LibTorch exports it.
extern "C" void sgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n,
                       const int* k, const float* alpha, const float* a, const int* lda,
                       const float* b, const int* ldb, const float* beta, float* c, const int* ldc);

namespace traind {
namespace {

// A matrix as column-major BLAS sees it: row-major memory reads as the transposed matrix.
struct BlasOperand {
  const char* transpose;
  int leading;
};

BlasOperand OperandOf(const ConstMatrix& m) {
  if (m.col_stride == 1) return {"N", static_cast<int>(m.row_stride)};
  return {"T", static_cast<int>(m.col_stride)};
}

// C' = B' A' in column-major terms.
void LibTorchGemm(const ConstMatrix& a, const ConstMatrix& b, float alpha, bool accumulate,
                  const Matrix& c) {
  const BlasOperand left = OperandOf(b);
  const BlasOperand right = OperandOf(a);
  const int m = static_cast<int>(c.cols);
  const int n = static_cast<int>(c.rows);
  const int k = static_cast<int>(a.cols);
  const int ldc = static_cast<int>(c.row_stride);
  const float beta = accumulate ? 1.0f : 0.0f;
  sgemm_(left.transpose, right.transpose, &m, &n, &k, &alpha, b.data, &left.leading, a.data,
         &right.leading, &beta, c.data, &ldc);
}

}  // namespace

GemmBackend DefaultGemmBackend() {
  const bool intel_avx512 =
      __builtin_cpu_is("intel") != 0 && __builtin_cpu_supports("avx512f") != 0;
  return intel_avx512 ? GemmBackend::kLibTorch : GemmBackend::kOwn;
}

void Gemm(const ConstMatrix& a, const ConstMatrix& b, float alpha, bool accumulate,
          const Matrix& c) {
  static const GemmBackend backend = DefaultGemmBackend();
  GemmWith(backend, a, b, alpha, accumulate, c);
}

void GemmWith(GemmBackend backend, const ConstMatrix& a, const ConstMatrix& b, float alpha,
              bool accumulate, const Matrix& c) {
  if (c.rows == 0 || c.cols == 0) return;
  switch (backend) {
    case GemmBackend::kOwn:
      return cpu::OwnGemm(a, b, alpha, accumulate, c);
    case GemmBackend::kLibTorch:
      return LibTorchGemm(a, b, alpha, accumulate, c);
  }
}

absl::Status CheckProcessor() {
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return absl::OkStatus();
  }
  return Error(absl::StatusCode::kFailedPrecondition, Reason::kLaunchFailed,
               "This processor lacks AVX2 and FMA, which the training kernels need. Run the worker "
               "on a machine of the x86-64-v3 level (Intel since 2013, AMD since 2015).");
}

}  // namespace traind
