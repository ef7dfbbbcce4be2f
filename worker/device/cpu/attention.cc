#include "worker/device/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "worker/device/cpu/fast_math.h"
#include "worker/device/cpu/gemm_kernel.h"
#include "worker/device/cpu/parallel.h"
#include "worker/device/cpu/softmax.h"

namespace traind::cpu {
namespace {

// Queries that are worked on together: 8 tiles of the matrix kernel.
constexpr int64_t kQueryBlock = 48;

// One row of the batch seen by one key/value head.
struct HeadGroup {
  AttentionShape shape;
  int64_t begin = 0;   // First token of the row.
  int64_t length = 0;  // Tokens of the row.
  int64_t key_value_head = 0;

  int64_t group_size() const { return shape.query_heads / shape.key_value_heads; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(shape.head_dim)); }
  // Distance of rows of scores: all keys, whole panels, and another panel against the cache
  // conflicts of a power of two.
  int64_t score_stride() const { return RoundUp(length, kPanelCols) + kPanelCols; }
};

// The keys' or values' part of qkv (or of its gradient) for one row and head: [length, head_dim].
template <typename Float>
Float* KeysOf(const HeadGroup& g, Float* qkv) {
  return qkv + g.begin * g.shape.qkv_size() + g.shape.query_size() +
         g.key_value_head * g.shape.head_dim;
}
template <typename Float>
Float* ValuesOf(const HeadGroup& g, Float* qkv) {
  return KeysOf(g, qkv) + g.shape.key_value_size();
}

ConstMatrix RowsOf(const HeadGroup& g, const float* data) {
  return {data, g.length, g.shape.head_dim, g.shape.qkv_size(), 1};
}

// A run of queries of one head.
struct QueryBlock {
  int64_t head = 0;
  int64_t first = 0;  // Within the row.
  int64_t count = 0;

  int64_t keys() const { return first + count; }  // Keys that the last query sees.
};

// Calls body(QueryBlock) for all blocks of all heads of the group.
template <typename Body>
void ForEachQueryBlock(const HeadGroup& g, Body body) {
  for (int64_t i = 0; i < g.group_size(); ++i) {
    const int64_t head = g.key_value_head * g.group_size() + i;
    for (int64_t first = 0; first < g.length; first += kQueryBlock) {
      body(QueryBlock{head, first, std::min(kQueryBlock, g.length - first)});
    }
  }
}

ConstMatrix QueriesOf(const HeadGroup& g, const QueryBlock& block, const float* qkv) {
  return {qkv + (g.begin + block.first) * g.shape.qkv_size() + block.head * g.shape.head_dim,
          block.count, g.shape.head_dim, g.shape.qkv_size(), 1};
}

// Offset of a block's outputs in [tokens, query_size].
int64_t OutputOffset(const HeadGroup& g, const QueryBlock& block) {
  return (g.begin + block.first) * g.shape.query_size() + block.head * g.shape.head_dim;
}

// Calls body(HeadGroup) for every row and key/value head, on all threads, long rows first so that
// no thread is left with a long one at the end.
template <typename Body>
void ForEachHeadGroup(const AttentionShape& shape, absl::Span<const int32_t> row_offsets,
                      Body body) {
  const int64_t rows = static_cast<int64_t>(row_offsets.size()) - 1;
  int64_t operations = 0;
  for (size_t row = 0; row + 1 < row_offsets.size(); ++row) {
    const int64_t length = row_offsets[row + 1] - row_offsets[row];
    operations += length * length * shape.query_size();
  }
  std::vector<size_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return row_offsets[a + 1] - row_offsets[a] > row_offsets[b + 1] - row_offsets[b];
  });
#pragma omp parallel for schedule(dynamic, 1) if (WorthThreads(operations))
  for (int64_t task = 0; task < rows * shape.key_value_heads; ++task) {
    const size_t row = order[static_cast<size_t>(task / shape.key_value_heads)];
    body(HeadGroup{shape, row_offsets[row], row_offsets[row + 1] - row_offsets[row],
                   task % shape.key_value_heads});
  }
}

void ForwardGroup(const HeadGroup& g, const float* qkv, float* out, float* log_sum_exp) {
  const int64_t head_dim = g.shape.head_dim;
  const int64_t stride = g.score_stride();
  float* keys = ThreadScratch(PanelFloats(head_dim, g.length) + PanelFloats(g.length, head_dim) +
                              kQueryBlock * stride);
  float* values = keys + PanelFloats(head_dim, g.length);
  float* scores = values + PanelFloats(g.length, head_dim);
  PackPanels(RowsOf(g, KeysOf(g, qkv)).Transposed(), head_dim, keys);
  PackPanels(RowsOf(g, ValuesOf(g, qkv)), g.length, values);
  ForEachQueryBlock(g, [&](const QueryBlock& block) {
    const int64_t padded = RoundUp(block.keys(), kPanelCols);
    MultiplyPanels(QueriesOf(g, block, qkv), {keys, head_dim}, g.scale(), false,
                   {scores, block.count, padded, stride});
    for (int64_t i = 0; i < block.count; ++i) {
      const int64_t visible = block.first + i + 1;
      float* row = scores + i * stride;
      log_sum_exp[(g.begin + block.first + i) * g.shape.query_heads + block.head] =
          SoftmaxInPlace(row, visible);
      std::fill(row + visible, row + block.keys(), 0.0f);
    }
    MultiplyPanels({scores, block.count, block.keys(), stride, 1}, {values, g.length}, 1, false,
                   {out + OutputOffset(g, block), block.count, head_dim, g.shape.query_size()});
  });
}

// Buffers of one backward task, cut from the thread's scratch.
struct BackwardScratch {
  explicit BackwardScratch(const HeadGroup& g) {
    const int64_t head_dim = g.shape.head_dim;
    const int64_t by_key = PanelFloats(head_dim, g.length);
    const int64_t by_dim = PanelFloats(g.length, head_dim);
    const int64_t block = PanelFloats(kQueryBlock, head_dim);
    const int64_t square = kQueryBlock * g.score_stride();
    keys_by_dim = ThreadScratch(2 * by_key + by_dim + 2 * block + 2 * square);
    values_by_dim = keys_by_dim + by_key;
    keys_by_key = values_by_dim + by_key;
    queries = keys_by_key + by_dim;
    d_out = queries + block;
    probabilities = d_out + block;
    d_scores = probabilities + square;
  }

  float* keys_by_dim;    // Panels of K^T [head_dim, length].
  float* values_by_dim;  // Panels of V^T.
  float* keys_by_key;    // Panels of K [length, head_dim].
  float* queries;        // Panels of a block of Q [count, head_dim].
  float* d_out;          // Panels of the block's d_out.
  float* probabilities;  // [kQueryBlock, score_stride]
  float* d_scores;       // [kQueryBlock, score_stride]; first d_probabilities.
};

// From scaled scores and d_probabilities of one query to probabilities and d_scores:
//   p = exp(score - log_sum_exp);  ds = scale * p * (dp - sum(out * d_out))
void SoftmaxBackward(float log_sum_exp, float out_dot, float scale, int64_t visible, float* p,
                     float* ds) {
#pragma omp simd
  for (int64_t j = 0; j < visible; ++j) {
    p[j] = FastExp(p[j] - log_sum_exp);
    ds[j] = scale * p[j] * (ds[j] - out_dot);
  }
}

float Dot(const float* x, const float* y, int64_t size) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += x[i] * y[i];
  return sum;
}

void ScoreGradients(const HeadGroup& g, const QueryBlock& block, const AttentionSaved& saved,
                    const float* d_out, const BackwardScratch& scratch) {
  const int64_t head_dim = g.shape.head_dim;
  const int64_t stride = g.score_stride();
  const int64_t padded = RoundUp(block.keys(), kPanelCols);
  const int64_t offset = OutputOffset(g, block);
  const ConstMatrix d_rows{d_out + offset, block.count, head_dim, g.shape.query_size(), 1};
  MultiplyPanels(QueriesOf(g, block, saved.qkv), {scratch.keys_by_dim, head_dim}, g.scale(), false,
                 {scratch.probabilities, block.count, padded, stride});
  MultiplyPanels(d_rows, {scratch.values_by_dim, head_dim}, 1, false,
                 {scratch.d_scores, block.count, padded, stride});
  for (int64_t i = 0; i < block.count; ++i) {
    const int64_t row = offset + i * g.shape.query_size();
    const int64_t visible = block.first + i + 1;
    float* p = scratch.probabilities + i * stride;
    float* ds = scratch.d_scores + i * stride;
    SoftmaxBackward(
        saved.log_sum_exp[(g.begin + block.first + i) * g.shape.query_heads + block.head],
        Dot(saved.out + row, d_out + row, head_dim), g.scale(), visible, p, ds);
    std::fill(p + visible, p + block.keys(), 0.0f);
    std::fill(ds + visible, ds + block.keys(), 0.0f);
  }
}

void BackwardGroup(const HeadGroup& g, const AttentionSaved& saved, const float* d_out,
                   float* d_qkv) {
  const int64_t head_dim = g.shape.head_dim;
  const int64_t qkv_size = g.shape.qkv_size();
  const BackwardScratch scratch(g);
  PackPanels(RowsOf(g, KeysOf(g, saved.qkv)).Transposed(), head_dim, scratch.keys_by_dim);
  PackPanels(RowsOf(g, ValuesOf(g, saved.qkv)).Transposed(), head_dim, scratch.values_by_dim);
  PackPanels(RowsOf(g, KeysOf(g, saved.qkv)), g.length, scratch.keys_by_key);
  float* d_keys = KeysOf(g, d_qkv);
  float* d_values = ValuesOf(g, d_qkv);
  for (int64_t i = 0; i < g.length; ++i) {
    std::fill_n(d_keys + i * qkv_size, head_dim, 0.0f);
    std::fill_n(d_values + i * qkv_size, head_dim, 0.0f);
  }
  ForEachQueryBlock(g, [&](const QueryBlock& block) {
    ScoreGradients(g, block, saved, d_out, scratch);
    const int64_t keys = block.keys();
    const ConstMatrix p{scratch.probabilities, block.count, keys, g.score_stride(), 1};
    const ConstMatrix ds{scratch.d_scores, block.count, keys, g.score_stride(), 1};
    const ConstMatrix queries = QueriesOf(g, block, saved.qkv);
    float* d_queries = d_qkv + (queries.data - saved.qkv);
    MultiplyPanels(ds, {scratch.keys_by_key, g.length}, 1, false,
                   {d_queries, block.count, head_dim, qkv_size});
    PackPanels(queries, block.count, scratch.queries);
    PackPanels({d_out + OutputOffset(g, block), block.count, head_dim, g.shape.query_size(), 1},
               block.count, scratch.d_out);
    MultiplyPanels(ds.Transposed(), {scratch.queries, block.count}, 1, true,
                   {d_keys, keys, head_dim, qkv_size});
    MultiplyPanels(p.Transposed(), {scratch.d_out, block.count}, 1, true,
                   {d_values, keys, head_dim, qkv_size});
  });
}

}  // namespace

void AttentionForward(const AttentionShape& shape, absl::Span<const int32_t> row_offsets,
                      const float* qkv, float* out, float* log_sum_exp) {
  ForEachHeadGroup(shape, row_offsets,
                   [&](const HeadGroup& g) { ForwardGroup(g, qkv, out, log_sum_exp); });
}

void AttentionBackward(const AttentionShape& shape, absl::Span<const int32_t> row_offsets,
                       const AttentionSaved& saved, const float* d_out, float* d_qkv) {
  ForEachHeadGroup(shape, row_offsets,
                   [&](const HeadGroup& g) { BackwardGroup(g, saved, d_out, d_qkv); });
}

void CachedAttention(const AttentionShape& shape, const CachedQueries& queries,
                     const KeyValueCache& cache, float* out) {
  const int64_t head_dim = shape.head_dim;
  const int64_t group_size = shape.query_heads / shape.key_value_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const int64_t operations =
      2 * queries.tokens * (queries.first + queries.tokens) * shape.query_size();
#pragma omp parallel for schedule(static) if (WorthThreads(operations))
  for (int64_t task = 0; task < queries.tokens * shape.query_heads; ++task) {
    const int64_t token = task / shape.query_heads;
    const int64_t head = task % shape.query_heads;
    const int64_t column = head / group_size * head_dim;
    const int64_t visible = queries.first + token + 1;
    const float* query = queries.qkv + token * shape.qkv_size() + head * head_dim;
    float* scores = ThreadScratch(visible);
    for (int64_t j = 0; j < visible; ++j) {
      scores[j] = scale * Dot(query, cache.keys + j * shape.key_value_size() + column, head_dim);
    }
    SoftmaxInPlace(scores, visible);
    float* result = out + token * shape.query_size() + head * head_dim;
    std::fill_n(result, head_dim, 0.0f);
    for (int64_t j = 0; j < visible; ++j) {
      const float* value = cache.values + j * shape.key_value_size() + column;
#pragma omp simd
      for (int64_t d = 0; d < head_dim; ++d) result[d] += scores[j] * value[d];
    }
  }
}

}  // namespace traind::cpu
