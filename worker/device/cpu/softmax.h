// Softmax and cross-entropy over rows of logits.
#pragma once

#include <cstdint>

namespace traind::cpu {

// Replaces values[0, size) by its softmax; returns the log-sum-exp. On the calling thread.
float SoftmaxInPlace(float* values, int64_t size);

// Rows of logits [rows, vocab_size] and what each should have predicted.
struct LogitRows {
  float* logits = nullptr;
  int64_t rows = 0;
  int64_t vocab_size = 0;
  const int32_t* targets = nullptr;  // [rows], each in [0, vocab_size)
};

// nll[i] = log-sum-exp of row i less its target's logit.
void CrossEntropy(const LogitRows& rows, double* nll);

// The same, and replaces the logits by the gradient of gradient_scale * nll: softmax less one-hot.
void CrossEntropyWithGradient(const LogitRows& rows, float gradient_scale, double* nll);

}  // namespace traind::cpu
