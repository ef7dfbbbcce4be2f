// Causal attention over packed rows: a token sees the earlier tokens of its own row and itself.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace traind::cpu {

struct AttentionShape {
  int64_t query_heads = 0;
  int64_t key_value_heads = 0;  // Divides query_heads; each serves a group of query heads.
  int64_t head_dim = 0;

  int64_t query_size() const { return query_heads * head_dim; }
  int64_t key_value_size() const { return key_value_heads * head_dim; }
  int64_t qkv_size() const { return query_size() + 2 * key_value_size(); }
};

// Forward over all rows; the cost grows with the sum of the rows' squared lengths.
//   qkv [tokens, q | k | v] after RoPE; row_offsets [rows + 1] as in PackedBatch
//   out [tokens, query_size]; log_sum_exp [tokens, query_heads], which backward needs
void AttentionForward(const AttentionShape& shape, absl::Span<const int32_t> row_offsets,
                      const float* qkv, float* out, float* log_sum_exp);

// What AttentionForward read and wrote.
struct AttentionSaved {
  const float* qkv = nullptr;
  const float* out = nullptr;
  const float* log_sum_exp = nullptr;
};

// Writes d_qkv, the gradient of qkv (after RoPE), given d_out, that of out.
void AttentionBackward(const AttentionShape& shape, absl::Span<const int32_t> row_offsets,
                       const AttentionSaved& saved, const float* d_out, float* d_qkv);

// Keys and values of one sequence so far, each [capacity, key_value_size].
struct KeyValueCache {
  const float* keys = nullptr;
  const float* values = nullptr;
};

// Attention of `tokens` new tokens at positions `first`, `first` + 1 … over a cache that holds
// their own keys and values already. queries [tokens, qkv_size], of which q is read;
// out [tokens, query_size].
struct CachedQueries {
  const float* qkv = nullptr;
  int64_t tokens = 0;
  int64_t first = 0;
};
void CachedAttention(const AttentionShape& shape, const CachedQueries& queries,
                     const KeyValueCache& cache, float* out);

}  // namespace traind::cpu
