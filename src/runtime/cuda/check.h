// Every CUDA call goes through cuda_ok(), which throws DeviceFault with the caller's place. CUDA files only.
#pragma once

#include <cuda_runtime.h>

#include <source_location>

namespace gannet {

void cuda_ok(cudaError_t error, const char* call, std::source_location where = std::source_location::current());

}  // namespace gannet
