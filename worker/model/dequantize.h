// Numbers as weight files store them, as fp32. No LibTorch.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace traind {

// Stored number formats that traind reads. Quantised ones are ggml's, in blocks of 32 numbers with
// an fp16 scale d: Q8_0 w = d q, Q4_0 w = d (q - 8), Q4_1 w = d q + m; in a block of 4-bit numbers
// byte j holds number j in its low half and number j + 16 in its high half.
enum class NumberFormat { kFloat32, kFloat16, kBfloat16, kQ8_0, kQ4_0, kQ4_1 };

// Converts all of `bytes`. REQUIRES: `out` has as many numbers as `bytes` stores.
void ConvertToFloat32(NumberFormat format, absl::string_view bytes, absl::Span<float> out);

}  // namespace traind
