#include <algorithm>

#include "kernels/args_check.h"
#include "kernels/linear.h"

namespace gannet {
namespace {

// Dot products in double over weights dequantised a piece at a time.
void run(const Linear& op, const LinearArgs& args, Exec& exec) {
  const int64_t rows = args.x.dim(0);
  check_linear(op, args);
  constexpr int64_t kPiece = 256;  // a multiple of every block
  exec.pool.parallel_for(int64_t{op.groups} * op.out, 16, [&](int64_t begin, int64_t end) {
    float w[kPiece];
    for (int64_t o = begin; o < end; ++o)
      for (int64_t t = 0; t < rows; ++t) {
        double sum = 0;
        for (int64_t k = 0; k < op.in; k += kPiece) {
          const int64_t n = std::min<int64_t>(kPiece, op.in - k);
          dequantize(args.weight, o, k, n, w);
          for (int64_t i = 0; i < n; ++i)
            sum += double{load_element(row_at(args.x, t), op.x, o / op.out * op.in + k + i)} * double{w[i]};
        }
        if (args.bias != nullptr) sum += double{args.bias[o]};
        store_element(row_at(args.y, t), op.y, o, static_cast<float>(sum));
      }
  });
}

constexpr LinearVariant kVariants[] = {{"ref", [](const Linear&, const Machine&) { return true; }, run}};

}  // namespace

std::span<const LinearVariant> linear_ref() { return kVariants; }

}  // namespace gannet
