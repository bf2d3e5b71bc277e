// What the CPU at hand can do, asked once at start. Cheap to copy.
#pragma once

#include <string>

namespace gannet {

struct CpuFeatures {
  bool avx2 = false;    // with FMA, F16C and BMI2
  bool avx512 = false;  // F, BW, VL, DQ, VBMI
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool avx512_fp16 = false;
  bool amx_int8 = false;  // and the operating system granted the tile state
  bool amx_bf16 = false;
  int n_cores = 1;   // CPUs this process may run on
  std::string name;  // as the CPU calls itself
};

// `limit` caps the instruction set: "scalar", "avx2", "avx512", "amx"; empty or unknown means no cap. Diagnostics
// and tests set it; results stay within the documented bounds either way.
CpuFeatures detect_cpu(const std::string& limit = "");

}  // namespace gannet
