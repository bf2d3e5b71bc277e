// Brings each row to the experts it chose and their results back. Here all experts are on this machine; an
// implementation over several ranks has the same three steps and the same bits.
//
//   x       f32 or bf16 [T, C]   rows may be strided
//   expert  i32 [T, K]           chosen experts of each row, distinct
//   weight  f32 [T, K]
//   dispatch() gives one row per (row, choice), grouped by expert, inside an expert in the order of rows
//   combine()  out f32 [T, C] = sum over a row's choices of their result rows, in rising expert id, fp32, starting
//   from
//              the first: the order is that of ids, so it does not depend on the router or on where experts live
//
// Memory  everything is allocated from the arena of `exec`; the caller's scope releases it.
// Owner   the thread that runs the step. Bits: copies and fp32 additions in the order said.
#pragma once

#include "runtime/exec.h"
#include "tensor/view.h"

namespace gannet::comm {

struct Dispatched {
  View x;                            // [T * K, C]
  const int32_t* offset = nullptr;   // i32 [n_local_experts + 1] first row of each expert
  const float* weight = nullptr;     // f32 [T * K]
  const int32_t* place = nullptr;    // i32 [T, K] where the results of a row will lie, rising
  int32_t n_rows = 0, n_chosen = 0;  // T, K
};

class ExpertParallel {
 public:
  virtual ~ExpertParallel() = default;
  virtual int32_t first_local_expert() const = 0;
  virtual int32_t n_local_experts() const = 0;
  virtual Dispatched dispatch(const View& x, const int32_t* expert, const float* weight, int32_t n_chosen,
                              Exec& exec) = 0;
  virtual void combine(const Dispatched& dispatched, const View& results, View out, Exec& exec) = 0;
  // Arena bytes for a step of at most max_rows rows.
  virtual int64_t workspace_bytes(int32_t max_rows, int32_t n_chosen, int32_t width) const = 0;
};

}  // namespace gannet::comm
