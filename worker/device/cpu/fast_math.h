// Elementary functions that compilers turn into vector code.
#pragma once

#include <bit>
#include <cstdint>

namespace traind::cpu {

// e^x with a relative error below 2e-7 in [-87.3, 88]; clamped outside, so that neither infinity
// nor zero comes out. NaN stays NaN.
inline float FastExp(float x) {
  x = x > 88.0f ? 88.0f : x;
  x = x < -87.3f ? -87.3f : x;
  // Adding 1.5 * 2^23 rounds to an integer, which then stands in the low bits.
  constexpr float kRounder = 12582912.0f;
  const float shifted = x * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  // x - n ln 2, with ln 2 in two parts.
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  // Cephes' polynomial for e^r on [-ln 2 / 2, ln 2 / 2].
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const uint32_t exponent = (std::bit_cast<uint32_t>(shifted) << 23) + (127u << 23);
  return p * std::bit_cast<float>(exponent);
}

}  // namespace traind::cpu
