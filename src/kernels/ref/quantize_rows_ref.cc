#include <array>
#include <vector>

#include "kernels/quantize_rows.h"
#include "kernels/row_codec.h"
#include "kernels/row_io.h"

namespace gannet {
namespace {

constexpr int32_t kPiece = 1024;  // channels coded at a time: a multiple of every block

void run(const QuantizeRows& op, const QuantizeRowsArgs& args, Exec& exec) {
  GANNET_CHECK(row_elements(args.x) == int64_t{op.width} * op.groups, "{} channels, not {}", row_elements(args.x),
               op.width);
  exec.pool.parallel_for(args.x.dim(0), 8, [&](int64_t begin, int64_t end) {
    std::array<float, kPiece> values;
    std::array<std::byte, kPiece> codes;
    std::array<std::byte, kPiece / 16> scales;
    const int64_t n = int64_t{op.width} * op.groups;  // groups hold whole blocks, so pieces may span them
    for (int64_t t = begin; t < end; ++t)
      for (int64_t c = 0; c < n; c += kPiece) {
        const auto piece = static_cast<int32_t>(std::min<int64_t>(kPiece, n - c));
        read_row(args.x, t, c, piece, values.data());
        encode_row(op.format, values.data(), piece, codes.data(), scales.data());
        decode_row(op.format, codes.data(), scales.data(), piece, values.data());
        write_row(values.data(), args.out, t, c, piece);
      }
  });
}

constexpr QuantizeRowsVariant kVariants[] = {
    {"ref", [](const QuantizeRows&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const QuantizeRowsVariant> quantize_rows_ref() { return kVariants; }

}  // namespace gannet
