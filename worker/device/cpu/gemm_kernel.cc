#include "worker/device/cpu/gemm_kernel.h"

#include <immintrin.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "worker/device/cpu/parallel.h"

namespace traind::cpu {
namespace {

// Depth of one block: a panel of it (36 KiB) stays in the second-level cache while all rows of A
// pass.
constexpr int64_t kDepthBlock = 576;
constexpr int64_t kRowBlock = 384;
constexpr int64_t kColBlock = 1536;
// Below this many rows packing B costs more than it saves.
constexpr int64_t kFewRows = 4;

// One tile of C: up to 6 rows by one panel.
struct Tile {
  const float* a = nullptr;
  int64_t a_row_stride = 0;
  int64_t a_depth_stride = 0;
  int64_t depth = 0;
  const float* panel = nullptr;
  float alpha = 1;
  bool accumulate = false;
  float* c = nullptr;
  int64_t c_stride = 0;
};

// The sums live in registers; every loop over kRows must unroll for that, or the speed halves.
template <int kRows>
void MultiplyTile(const Tile& tile) {
  __m256 left[kRows];
  __m256 right[kRows];
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    left[i] = _mm256_setzero_ps();
    right[i] = _mm256_setzero_ps();
    __builtin_prefetch(tile.c + i * tile.c_stride, 1, 3);
  }
  const float* a = tile.a;
  const float* b = tile.panel;
  const int64_t row_stride = tile.a_row_stride;
  const int64_t depth_stride = tile.a_depth_stride;
  for (int64_t k = 0; k < tile.depth; ++k, a += depth_stride, b += kPanelCols) {
    const __m256 b_left = _mm256_load_ps(b);
    const __m256 b_right = _mm256_load_ps(b + 8);
#pragma GCC unroll 6
    for (int i = 0; i < kRows; ++i) {
      const __m256 value = _mm256_broadcast_ss(a + i * row_stride);
      left[i] = _mm256_fmadd_ps(value, b_left, left[i]);
      right[i] = _mm256_fmadd_ps(value, b_right, right[i]);
    }
  }
  const __m256 alpha = _mm256_set1_ps(tile.alpha);
#pragma GCC unroll 6
  for (int i = 0; i < kRows; ++i) {
    float* c = tile.c + i * tile.c_stride;
    const __m256 old_left = tile.accumulate ? _mm256_loadu_ps(c) : _mm256_setzero_ps();
    const __m256 old_right = tile.accumulate ? _mm256_loadu_ps(c + 8) : _mm256_setzero_ps();
    _mm256_storeu_ps(c, _mm256_fmadd_ps(alpha, left[i], old_left));
    _mm256_storeu_ps(c + 8, _mm256_fmadd_ps(alpha, right[i], old_right));
  }
}

using TileFunction = void (*)(const Tile&);
constexpr TileFunction kTileFunctions[] = {nullptr,         MultiplyTile<1>, MultiplyTile<2>,
                                           MultiplyTile<3>, MultiplyTile<4>, MultiplyTile<5>,
                                           MultiplyTile<6>};

// A tile of the last panel, of which only `cols` columns exist in C.
void MultiplyEdgeTile(const Tile& tile, int64_t rows, int64_t cols) {
  alignas(32) float buffer[kTileRows * kPanelCols];
  Tile local = tile;
  local.c = buffer;
  local.c_stride = kPanelCols;
  local.accumulate = false;
  kTileFunctions[rows](local);
  for (int64_t i = 0; i < rows; ++i) {
    float* c = tile.c + i * tile.c_stride;
    const float* sums = buffer + i * kPanelCols;
    for (int64_t j = 0; j < cols; ++j) c[j] = tile.accumulate ? c[j] + sums[j] : sums[j];
  }
}

void Transpose8x8(__m256 (&rows)[8]) {
  __m256 pairs[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  __m256 quads[8];
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xEE);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xEE);
  }
  for (int i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31);
  }
}

// Panel from B stored column by column, as weights [out, in] seen as [in, out] are.
void PackTransposedPanel(const float* b, int64_t col_stride, int64_t depth, float* panel) {
  int64_t k = 0;
  for (; k + 8 <= depth; k += 8) {
    for (int half = 0; half < 2; ++half) {
      __m256 block[8];
      for (int j = 0; j < 8; ++j) block[j] = _mm256_loadu_ps(b + (half * 8 + j) * col_stride + k);
      Transpose8x8(block);
      for (int j = 0; j < 8; ++j) {
        _mm256_store_ps(panel + (k + j) * kPanelCols + half * 8, block[j]);
      }
    }
  }
  for (; k < depth; ++k) {
    for (int64_t j = 0; j < kPanelCols; ++j) panel[k * kPanelCols + j] = b[j * col_stride + k];
  }
}

void PackPanel(const ConstMatrix& b, int64_t first_col, float* panel) {
  const int64_t cols = std::min(kPanelCols, b.cols - first_col);
  const float* source = b.data + first_col * b.col_stride;
  if (cols == kPanelCols && b.row_stride == 1) {
    PackTransposedPanel(source, b.col_stride, b.rows, panel);
    return;
  }
  if (cols == kPanelCols && b.col_stride == 1) {
    for (int64_t k = 0; k < b.rows; ++k) {
      std::copy_n(source + k * b.row_stride, kPanelCols, panel + k * kPanelCols);
    }
    return;
  }
  for (int64_t k = 0; k < b.rows; ++k) {
    for (int64_t j = 0; j < kPanelCols; ++j) {
      panel[k * kPanelCols + j] = j < cols ? source[k * b.row_stride + j * b.col_stride] : 0.0f;
    }
  }
}

ConstMatrix Block(const ConstMatrix& m, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  return {m.data + row * m.row_stride + col * m.col_stride, rows, cols, m.row_stride, m.col_stride};
}

Matrix Block(const Matrix& m, int64_t row, int64_t rows, int64_t col, int64_t cols) {
  return {m.data + row * m.row_stride + col, rows, cols, m.row_stride};
}

// The whole product on this thread.
void GemmOnThread(const ConstMatrix& a, const ConstMatrix& b, float alpha, bool accumulate,
                  const Matrix& c) {
  const int64_t depth_blocks = std::max<int64_t>(1, (a.cols + kDepthBlock - 1) / kDepthBlock);
  const int64_t depth_step = RoundUp((a.cols + depth_blocks - 1) / depth_blocks, 8);
  float* packed = ThreadScratch(PanelFloats(depth_step, std::min(kColBlock, c.cols)));
  for (int64_t col = 0; col < c.cols; col += kColBlock) {
    const int64_t cols = std::min(kColBlock, c.cols - col);
    for (int64_t k = 0; k < a.cols || k == 0; k += depth_step) {
      const int64_t depth = std::min(depth_step, a.cols - k);
      PackPanels(Block(b, k, depth, col, cols), depth, packed);
      for (int64_t row = 0; row < c.rows; row += kRowBlock) {
        const int64_t rows = std::min(kRowBlock, c.rows - row);
        MultiplyPanels(Block(a, row, rows, k, depth), {packed, depth}, alpha, accumulate || k > 0,
                       Block(c, row, rows, col, cols));
      }
    }
  }
}

float Dot(const float* x, const float* y, int64_t size) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += x[i] * y[i];
  return sum;
}

// For one or a few rows against B stored column by column: one pass over B, no packing.
void FewRowsGemm(const ConstMatrix& a, const ConstMatrix& b, float alpha, bool accumulate,
                 const Matrix& c) {
#pragma omp parallel for schedule(static) if (WorthThreads(c.rows * c.cols * a.cols))
  for (int64_t j = 0; j < c.cols; ++j) {
    for (int64_t i = 0; i < c.rows; ++i) {
      float& out = c.data[i * c.row_stride + j];
      const float product =
          alpha * Dot(a.data + i * a.row_stride, b.data + j * b.col_stride, a.cols);
      out = accumulate ? out + product : product;
    }
  }
}

struct FreeScratch {
  void operator()(float* block) const { std::free(block); }
};

// Where piece `part` of `parts` begins when `units` are dealt out evenly.
int64_t PartBegin(int64_t units, int64_t part, int64_t parts) { return units * part / parts; }

}  // namespace

void PackPanels(const ConstMatrix& b, int64_t panel_depth, float* panels) {
  for (int64_t col = 0; col < b.cols; col += kPanelCols) {
    PackPanel(b, col, panels + col * panel_depth);
  }
}

void MultiplyPanels(const ConstMatrix& a, const Panels& b, float alpha, bool accumulate,
                    const Matrix& c) {
  Tile tile{nullptr, a.row_stride, a.col_stride, a.cols,      nullptr,
            alpha,   accumulate,   nullptr,      c.row_stride};
  for (int64_t col = 0; col < c.cols; col += kPanelCols) {
    const int64_t cols = std::min(kPanelCols, c.cols - col);
    tile.panel = b.data + col * b.depth;
    for (int64_t row = 0; row < c.rows; row += kTileRows) {
      const int64_t rows = std::min(kTileRows, c.rows - row);
      tile.a = a.data + row * a.row_stride;
      tile.c = c.data + row * c.row_stride + col;
      if (cols == kPanelCols) {
        kTileFunctions[rows](tile);
      } else {
        MultiplyEdgeTile(tile, rows, cols);
      }
    }
  }
}

float* ThreadScratch(int64_t floats) {
  thread_local std::unique_ptr<float, FreeScratch> block;
  thread_local int64_t capacity = 0;
  if (floats > capacity) {
    block.reset();
    capacity = RoundUp(floats, 1024);
    block.reset(
        static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(capacity) * sizeof(float))));
    if (block == nullptr) throw std::bad_alloc();
  }
  return block.get();
}

void OwnGemm(const ConstMatrix& a, const ConstMatrix& b, float alpha, bool accumulate,
             const Matrix& c) {
  if (c.rows <= kFewRows && a.col_stride == 1 && b.row_stride == 1) {
    FewRowsGemm(a, b, alpha, accumulate, c);
    return;
  }
  const int64_t panels = (c.cols + kPanelCols - 1) / kPanelCols;
  const int64_t tiles = (c.rows + kTileRows - 1) / kTileRows;
  // Dealing out columns packs B only once; with few columns the rows are dealt out.
  const bool by_cols = panels >= 16 || tiles < 16;
#pragma omp parallel if (WorthThreads(c.rows * c.cols * a.cols))
  {
    const int64_t part = omp_get_thread_num();
    const int64_t parts = omp_get_num_threads();
    if (by_cols) {
      const int64_t begin = PartBegin(panels, part, parts) * kPanelCols;
      const int64_t end = std::min(c.cols, PartBegin(panels, part + 1, parts) * kPanelCols);
      if (begin < end) {
        GemmOnThread(a, Block(b, 0, b.rows, begin, end - begin), alpha, accumulate,
                     Block(c, 0, c.rows, begin, end - begin));
      }
    } else {
      const int64_t begin = PartBegin(tiles, part, parts) * kTileRows;
      const int64_t end = std::min(c.rows, PartBegin(tiles, part + 1, parts) * kTileRows);
      if (begin < end) {
        GemmOnThread(Block(a, begin, end - begin, 0, a.cols), b, alpha, accumulate,
                     Block(c, begin, end - begin, 0, c.cols));
      }
    }
  }
}

}  // namespace traind::cpu
