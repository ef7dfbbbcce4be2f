#include "worker/objective/chunked_cross_entropy.h"

#include <algorithm>
#include <utility>

#include "worker/device/cpu/softmax.h"
#include "worker/device/gemm.h"

namespace traind {
namespace {

constexpr int64_t kMaxChunkRows = 512;
constexpr int64_t kMinChunkRows = 64;
// About 100 MB of logits.
constexpr int64_t kMaxChunkLogits = int64_t{25} << 20;

}  // namespace

ChunkedCrossEntropy::ChunkedCrossEntropy(const LmHead& head)
    : head_(head),
      chunk_rows_(std::clamp(kMaxChunkLogits / head.vocab_size, kMinChunkRows, kMaxChunkRows)) {}

void ChunkedCrossEntropy::LayOut(Arena& arena, int64_t targets) {
  const int64_t rows = std::min(chunk_rows_, targets);
  hidden_ = arena.Take(rows * head_.norm.size);
  normed_ = arena.Take(rows * head_.norm.size);
  d_hidden_ = arena.Take(rows * head_.norm.size);
  logits_ = arena.Take(rows * head_.vocab_size);
}

void ChunkedCrossEntropy::ComputeLogits(const float* x, const Chunk& chunk) {
  const int64_t size = head_.norm.size;
  for (int64_t i = 0; i < chunk.rows; ++i) {
    std::copy_n(x + chunk.positions[i] * size, size, hidden_ + i * size);
  }
  cpu::RmsNormForward(head_.norm, hidden_, chunk.rows, normed_);
  Gemm(RowMajor(std::as_const(normed_), chunk.rows, size),
       RowMajor(head_.weight, head_.vocab_size, size).Transposed(), 1, false,
       RowMajor(logits_, chunk.rows, head_.vocab_size));
}

void ChunkedCrossEntropy::AddHiddenGradient(const Chunk& chunk, float* dx) {
  const int64_t size = head_.norm.size;
  Gemm(RowMajor(std::as_const(logits_), chunk.rows, head_.vocab_size),
       RowMajor(head_.weight, head_.vocab_size, size), 1, false,
       RowMajor(normed_, chunk.rows, size));
  std::fill_n(d_hidden_, chunk.rows * size, 0.0f);
  cpu::RmsNormBackward(head_.norm, hidden_, normed_, chunk.rows, d_hidden_);
  for (int64_t i = 0; i < chunk.rows; ++i) {
    const float* gradient = d_hidden_ + i * size;
    float* row = dx + chunk.positions[i] * size;
    for (int64_t j = 0; j < size; ++j) row[j] += gradient[j];
  }
}

std::vector<double> ChunkedCrossEntropy::Evaluate(const float* x,
                                                  const SupervisedTargets& targets) {
  std::vector<double> nll(targets.positions.size());
  for (int64_t first = 0; first < targets.size(); first += chunk_rows_) {
    const Chunk chunk{targets.positions.data() + first,
                      std::min(chunk_rows_, targets.size() - first)};
    ComputeLogits(x, chunk);
    cpu::CrossEntropy({logits_, chunk.rows, head_.vocab_size, targets.ids.data() + first},
                      nll.data() + first);
  }
  return nll;
}

std::vector<double> ChunkedCrossEntropy::ForwardBackward(const float* x,
                                                         const SupervisedTargets& targets,
                                                         float gradient_scale, float* dx) {
  std::vector<double> nll(targets.positions.size());
  for (int64_t first = 0; first < targets.size(); first += chunk_rows_) {
    const Chunk chunk{targets.positions.data() + first,
                      std::min(chunk_rows_, targets.size() - first)};
    ComputeLogits(x, chunk);
    cpu::CrossEntropyWithGradient(
        {logits_, chunk.rows, head_.vocab_size, targets.ids.data() + first}, gradient_scale,
        nll.data() + first);
    AddHiddenGradient(chunk, dx);
  }
  return nll;
}

}  // namespace traind
