#include "tensor/gguf_blocks.h"

#include <cstring>

#include "base/check.h"
#include "tensor/dtype.h"

namespace gannet {
namespace {

float half(const uint8_t* at) {
  f16 value;
  std::memcpy(&value, at, 2);
  return to_f32(value);
}

// 32 elements: d, [m], [one high bit an element], nibbles: element i low nibble of byte i, element i+16 its high
// one.
void q4_or_q5(const uint8_t* block, bool five_bits, bool has_min, float* out) {
  const float d = half(block), m = has_min ? half(block + 2) : 0.0f;
  const uint8_t* at = block + (has_min ? 4 : 2);
  uint32_t high = 0;
  if (five_bits) {
    std::memcpy(&high, at, 4);
    at += 4;
  }
  const int zero = has_min ? 0 : five_bits ? 16 : 8;
  for (int i = 0; i < 32; ++i) {
    const int low = i < 16 ? at[i] & 15 : at[i - 16] >> 4;
    const int code = (low | static_cast<int>(high >> i & 1u) << 4) - zero;
    const float product = d * static_cast<float>(code);
    out[i] = has_min ? product + m : product;
  }
}

void q8_0(const uint8_t* block, float* out) {
  const float d = half(block);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(static_cast<int8_t>(block[2 + i]));
}

void mxfp4(const uint8_t* block, float* out) {
  const float d = e8m0_to_f32(block[0]);
  for (int i = 0; i < 16; ++i) {
    out[i] = e2m1_to_f32(block[1 + i] & 15) * d;
    out[i + 16] = e2m1_to_f32(block[1 + i] >> 4) * d;
  }
}

// 256 elements, 16 sub-blocks: scales[16] (4-bit scale, 4-bit min), qs[64] (2 bits), d, dmin.
void q2_k(const uint8_t* block, float* out) {
  const uint8_t* scales = block;
  const uint8_t* qs = block + 16;
  const float d = half(block + 80), dmin = half(block + 82);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 128, shift = i % 128 / 32 * 2, byte = group * 32 + i % 32;
    const uint8_t sc = scales[i / 16];
    const float scale = d * static_cast<float>(sc & 15), minimum = dmin * static_cast<float>(sc >> 4);
    out[i] = scale * static_cast<float>(qs[byte] >> shift & 3) - minimum;
  }
}

// 256 elements, 16 sub-blocks: hmask[32], qs[64] (2 bits), scales[12] (6 bits each), d.
void q3_k(const uint8_t* block, float* out) {
  const uint8_t* hmask = block;
  const uint8_t* qs = block + 32;
  const uint8_t* packed = block + 96;
  const float d = half(block + 108);
  for (int i = 0; i < 256; ++i) {
    const int sub = i / 16;
    const int low = sub < 8 ? packed[sub] & 15 : packed[sub - 8] >> 4;
    const int high = packed[8 + sub % 4] >> (2 * (sub / 4)) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    const int group = i / 128, shift = i % 128 / 32;
    const int code =
        (qs[group * 32 + i % 32] >> (2 * shift) & 3) - (hmask[i % 32] >> (group * 4 + shift) & 1 ? 0 : 4);
    out[i] = scale * static_cast<float>(code);
  }
}

// 6-bit scale and min of sub-block j of Q4_K and Q5_K, from the 12 packed bytes.
void k_scale_min(const uint8_t* packed, int j, int& scale, int& minimum) {
  if (j < 4) {
    scale = packed[j] & 63;
    minimum = packed[j + 4] & 63;
  } else {
    scale = (packed[j + 4] & 15) | (packed[j - 4] >> 6) << 4;
    minimum = (packed[j + 4] >> 4) | (packed[j] >> 6) << 4;
  }
}

// 256 elements, 8 sub-blocks: d, dmin, scales[12], [qh[32]], qs[128].
void q4_or_q5_k(const uint8_t* block, bool five_bits, float* out) {
  const float d = half(block), dmin = half(block + 2);
  const uint8_t* packed = block + 4;
  const uint8_t* high = block + 16;
  const uint8_t* qs = block + (five_bits ? 48 : 16);
  for (int i = 0; i < 256; ++i) {
    int scale = 0, minimum = 0;
    const int sub = i / 32;
    k_scale_min(packed, sub, scale, minimum);
    const uint8_t pair = qs[sub / 2 * 32 + i % 32];
    int code = sub % 2 == 0 ? pair & 15 : pair >> 4;
    if (five_bits) code |= (high[i % 32] >> sub & 1) << 4;
    const float step = d * static_cast<float>(scale), offset = dmin * static_cast<float>(minimum);
    out[i] = step * static_cast<float>(code) - offset;
  }
}

// 256 elements, 16 sub-blocks: ql[128], qh[64], int8 scales[16], d.
void q6_k(const uint8_t* block, float* out) {
  const uint8_t* ql = block;
  const uint8_t* qh = block + 128;
  const uint8_t* scales = block + 192;
  const float d = half(block + 208);
  for (int i = 0; i < 256; ++i) {
    const int group = i / 128, quarter = i % 128 / 32, lane = i % 32;
    const uint8_t pair = ql[group * 64 + quarter % 2 * 32 + lane];
    const int low = quarter < 2 ? pair & 15 : pair >> 4;
    const int code = (low | (qh[group * 32 + lane] >> (2 * quarter) & 3) << 4) - 32;
    const float scale = d * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    out[i] = scale * static_cast<float>(code);
  }
}

}  // namespace

void dequantize_gguf(WeightFormat format, const std::byte* codes, int64_t n_blocks, float* out) {
  const WeightFormatInfo& info = weight_format_info(format);
  for (int64_t b = 0; b < n_blocks; ++b) {
    const auto* block = reinterpret_cast<const uint8_t*>(codes) + b * info.block_bytes;
    float* to = out + b * info.block_elements;
    switch (format) {
      case WeightFormat::q4_0:
        q4_or_q5(block, false, false, to);
        break;
      case WeightFormat::q4_1:
        q4_or_q5(block, false, true, to);
        break;
      case WeightFormat::q5_0:
        q4_or_q5(block, true, false, to);
        break;
      case WeightFormat::q5_1:
        q4_or_q5(block, true, true, to);
        break;
      case WeightFormat::q8_0:
        q8_0(block, to);
        break;
      case WeightFormat::q2_k:
        q2_k(block, to);
        break;
      case WeightFormat::q3_k:
        q3_k(block, to);
        break;
      case WeightFormat::q4_k:
        q4_or_q5_k(block, false, to);
        break;
      case WeightFormat::q5_k:
        q4_or_q5_k(block, true, to);
        break;
      case WeightFormat::q6_k:
        q6_k(block, to);
        break;
      case WeightFormat::mxfp4_gguf:
        mxfp4(block, to);
        break;
      default:
        GANNET_CHECK(false, "format {} is not a GGUF block format", static_cast<int>(format));
    }
  }
}

}  // namespace gannet
