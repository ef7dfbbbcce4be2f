#include "worker/device/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace traind {
namespace {

constexpr uint32_t kSeed = 11;

struct Shape {
  int64_t m, n, k;
};

// A strided matrix with its own memory; `transposed` stores it column by column.
struct Operand {
  std::vector<float> memory;
  ConstMatrix view;
};

Operand RandomOperand(int64_t rows, int64_t cols, bool transposed, std::mt19937& generator) {
  Operand operand;
  const int64_t stride = (transposed ? rows : cols) + 3;
  operand.memory.resize(static_cast<size_t>((transposed ? cols : rows) * stride));
  std::normal_distribution<float> normal(0, 1);
  for (float& value : operand.memory) value = normal(generator);
  operand.view = transposed ? ConstMatrix{operand.memory.data(), rows, cols, 1, stride}
                            : ConstMatrix{operand.memory.data(), rows, cols, stride, 1};
  return operand;
}

double At(const ConstMatrix& m, int64_t row, int64_t col) {
  return static_cast<double>(m.data[row * m.row_stride + col * m.col_stride]);
}

// Largest error of one product, relative to sqrt(k), the size that sums of k products have.
double ErrorOf(GemmBackend backend, const Shape& shape, const Operand& a, const Operand& b,
               bool accumulate) {
  const int64_t stride = shape.n + 5;
  std::vector<float> c(static_cast<size_t>(shape.m * stride), 0.5f);
  GemmWith(backend, a.view, b.view, 0.7f, accumulate, {c.data(), shape.m, shape.n, stride});
  double worst = 0;
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < stride; ++j) {
      double expected = j < shape.n && !accumulate ? 0 : 0.5;
      for (int64_t k = 0; j < shape.n && k < shape.k; ++k) {
        expected += static_cast<double>(0.7f) * At(a.view, i, k) * At(b.view, k, j);
      }
      const double actual = static_cast<double>(c[static_cast<size_t>(i * stride + j)]);
      worst = std::max(worst, std::abs(actual - expected));
    }
  }
  return worst / std::sqrt(static_cast<double>(shape.k));
}

class GemmTest : public testing::TestWithParam<GemmBackend> {};

// All layouts, shapes around the edges of tiles, panels and blocks, with and without threads; also
// that nothing outside C is written.
TEST_P(GemmTest, EqualsTheSumInDouble) {
  std::mt19937 generator(kSeed);
  double worst = 0;
  for (const Shape& shape : {Shape{1, 1, 1},
                             {1, 33, 40},
                             {4, 100, 70},
                             {5, 16, 8},
                             {6, 15, 9},
                             {7, 17, 1},
                             {13, 48, 577},
                             {400, 20, 30},
                             {100, 300, 50},
                             {33, 1600, 20},
                             {17, 40, 1200}}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const Operand a = RandomOperand(shape.m, shape.k, a_transposed, generator);
        const Operand b = RandomOperand(shape.k, shape.n, b_transposed, generator);
        for (const bool accumulate : {false, true}) {
          const double error = ErrorOf(GetParam(), shape, a, b, accumulate);
          EXPECT_LE(error, 1e-5) << shape.m << " x " << shape.n << " x " << shape.k
                                 << (a_transposed ? " A^T" : "") << (b_transposed ? " B^T" : "");
          worst = std::max(worst, error);
        }
      }
    }
  }
  std::cout << "worst error " << worst << " sqrt(k) (bar 1e-5, seed " << kSeed << ")\n";
}

INSTANTIATE_TEST_SUITE_P(All, GemmTest, testing::Values(GemmBackend::kOwn, GemmBackend::kLibTorch),
                         [](const auto& instance) {
                           return instance.param == GemmBackend::kOwn ? "Own" : "LibTorch";
                         });

TEST(GemmBackendTest, TheDefaultDoesNotChange) {
  EXPECT_EQ(DefaultGemmBackend(), DefaultGemmBackend());
  EXPECT_TRUE(CheckProcessor().ok()) << CheckProcessor();
}

}  // namespace
}  // namespace traind
