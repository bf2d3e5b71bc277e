// Noise of every vocabulary id on a device against the host's, bit for bit. Needs a device:
//   nvcc -std=c++20 -O3 -arch=sm_90a -Isrc tests/cuda/sample_noise.cu -o sample_noise && ./sample_noise
#include <cstdio>
#include <cstring>
#include <vector>

#include "sample/random.h"

using gannet::sample::NoiseKey;

namespace {

constexpr int kVocab = 129280, kRows = 64;

__host__ __device__ float score(const NoiseKey& key, int id) {
  const float g = gannet::sample::gumbel(key, static_cast<uint32_t>(id));
  const float e = gannet::sample::exp_negative<gannet::sample::OneLane>(-gannet::sample::uniform(key, id) * 30.0f);
  return g + static_cast<float>(gannet::sample::mass_of(e));
}

__global__ void scores(NoiseKey key, float* out, float* noise) {
  const int id = blockIdx.x * blockDim.x + threadIdx.x;
  if (id >= kVocab) return;
  out[id] = score(key, id);
  noise[id] = gannet::sample::gumbel(key, static_cast<uint32_t>(id));
}

bool ok(cudaError_t error) {
  if (error != cudaSuccess) std::printf("CUDA: %s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

}  // namespace

int main() {
  float *out = nullptr, *noise = nullptr;
  if (!ok(cudaMalloc(&out, kVocab * sizeof(float))) || !ok(cudaMalloc(&noise, kVocab * sizeof(float)))) return 2;
  std::vector<float> got(kVocab), got_noise(kVocab);
  long long n_different = 0;
  for (int row = 0; row < kRows; ++row) {
    const NoiseKey key = gannet::sample::sample_key(0x9E3779B97F4A7C15ull * (row + 1), row % 3, 1000 * row);
    scores<<<(kVocab + 255) / 256, 256>>>(key, out, noise);
    if (!ok(cudaMemcpy(got.data(), out, kVocab * sizeof(float), cudaMemcpyDeviceToHost)) ||
        !ok(cudaMemcpy(got_noise.data(), noise, kVocab * sizeof(float), cudaMemcpyDeviceToHost)))
      return 2;
    for (int id = 0; id < kVocab; ++id) {
      const float want = score(key, id), want_noise = gannet::sample::gumbel(key, static_cast<uint32_t>(id));
      n_different += std::memcmp(&want, &got[id], 4) != 0 || std::memcmp(&want_noise, &got_noise[id], 4) != 0;
    }
  }
  std::printf("%lld of %lld values differ between host and device\n", n_different, 1LL * kVocab * kRows);
  return n_different == 0 ? 0 : 1;
}
