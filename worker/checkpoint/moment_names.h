// Names of AdamW's moments in optimizer.safetensors: the prefix, then the matrix's name.
#pragma once

namespace traind {

inline constexpr char kExpAvgPrefix[] = "exp_avg.";
inline constexpr char kExpAvgSqPrefix[] = "exp_avg_sq.";

}  // namespace traind
