#include "runtime/device.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "runtime/cuda/check.h"

namespace gannet {

void cuda_ok(cudaError_t error, const char* call, std::source_location where) {
  if (error == cudaSuccess) return;
  std::string file = where.file_name();
  file = file.substr(file.rfind('/') + 1);
  throw DeviceFault(std::string(call) + " failed: " + cudaGetErrorString(error) + " (" + file + ":" +
                    std::to_string(where.line()) + ")");
}

namespace {

constexpr int64_t kStagingBytes = int64_t{8} << 20;  // each of two halves; past 4 MiB a copy runs at the bus's rate

class CudaGraph final : public DeviceGraph {
 public:
  CudaGraph(cudaGraph_t graph, cudaStream_t stream) : graph_(graph), stream_(stream) {
    cuda_ok(cudaGraphInstantiate(&exec_, graph_, 0), "cudaGraphInstantiate");
  }
  ~CudaGraph() override {
    if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
    cudaGraphDestroy(graph_);
  }
  void replay() override { cuda_ok(cudaGraphLaunch(exec_, stream_), "cudaGraphLaunch"); }

 private:
  cudaGraph_t graph_;
  cudaGraphExec_t exec_ = nullptr;
  cudaStream_t stream_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, int64_t reserve) : info_(std::move(info)) {
    cuda_ok(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    for (cudaEvent_t* event : {&copied_[0], &copied_[1]})
      cuda_ok(cudaEventCreateWithFlags(event, cudaEventDisableTiming), "cudaEventCreate");
    for (cudaEvent_t* event : {&begin_, &end_}) cuda_ok(cudaEventCreate(event), "cudaEventCreate");
    cuda_ok(cudaMallocHost(&staging_, 2 * kStagingBytes), "cudaMallocHost");
    cuda_ok(cudaMalloc(&memory_, static_cast<size_t>(reserve)), "cudaMalloc");
    reserve_ = reserve;
  }
  ~CudaDevice() override {
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
    if (memory_ != nullptr) cudaFree(memory_);
    if (staging_ != nullptr) cudaFreeHost(staging_);
    for (cudaEvent_t event : {copied_[0], copied_[1], begin_, end_})
      if (event != nullptr) cudaEventDestroy(event);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  const DeviceInfo& info() const override { return info_; }
  void* stream() const override { return stream_; }

  std::byte* allocate(int64_t bytes) override {
    const int64_t begin = (used_ + 255) / 256 * 256;
    GANNET_CHECK(bytes >= 0 && bytes <= reserve_ - begin, "device memory of {} bytes, {} used, {} more asked",
                 reserve_, used_, bytes);
    used_ = begin + bytes;
    return static_cast<std::byte*>(memory_) + begin;
  }
  int64_t left_bytes() const override { return reserve_ - used_; }

  void upload(void* to, const void* from, int64_t bytes) override {
    for (int64_t done = 0; done < bytes; done += kStagingBytes, half_ ^= 1) {
      const int64_t n = std::min(kStagingBytes, bytes - done);
      auto* stage = static_cast<std::byte*>(staging_) + half_ * kStagingBytes;
      cuda_ok(cudaEventSynchronize(copied_[half_]), "cudaEventSynchronize");  // the copy that last used this half
      std::memcpy(stage, static_cast<const std::byte*>(from) + done, static_cast<size_t>(n));
      cuda_ok(cudaMemcpyAsync(static_cast<std::byte*>(to) + done, stage, static_cast<size_t>(n),
                              cudaMemcpyHostToDevice, stream_),
              "cudaMemcpyAsync");
      cuda_ok(cudaEventRecord(copied_[half_], stream_), "cudaEventRecord");
    }
  }
  void download(void* to, const void* from, int64_t bytes) override {
    for (int64_t done = 0; done < bytes; done += kStagingBytes) {
      const int64_t n = std::min(kStagingBytes, bytes - done);
      for (cudaEvent_t event : copied_) cuda_ok(cudaEventSynchronize(event), "cudaEventSynchronize");
      cuda_ok(cudaMemcpyAsync(staging_, static_cast<const std::byte*>(from) + done, static_cast<size_t>(n),
                              cudaMemcpyDeviceToHost, stream_),
              "cudaMemcpyAsync");
      wait();
      std::memcpy(static_cast<std::byte*>(to) + done, staging_, static_cast<size_t>(n));
    }
  }
  void fill(void* at, int byte, int64_t bytes) override {
    cuda_ok(cudaMemsetAsync(at, byte, static_cast<size_t>(bytes), stream_), "cudaMemsetAsync");
  }
  void copy(void* to, const void* from, int64_t bytes) override {
    cuda_ok(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_),
            "cudaMemcpyAsync");
  }
  void wait() override { cuda_ok(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

  std::unique_ptr<DeviceGraph> capture(const std::function<void()>& work) override {
    cudaGraph_t graph = nullptr;
    cuda_ok(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    try {
      work();
    } catch (...) {
      cudaStreamEndCapture(stream_, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    cuda_ok(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    return std::make_unique<CudaGraph>(graph, stream_);
  }

  double time_us(const std::function<void()>& work) override {
    cuda_ok(cudaEventRecord(begin_, stream_), "cudaEventRecord");
    work();
    cuda_ok(cudaEventRecord(end_, stream_), "cudaEventRecord");
    cuda_ok(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    cuda_ok(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return 1e3 * static_cast<double>(milliseconds);
  }

 private:
  DeviceInfo info_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t copied_[2] = {}, begin_ = nullptr, end_ = nullptr;
  void* staging_ = nullptr;
  void* memory_ = nullptr;
  int64_t reserve_ = 0, used_ = 0;
  int half_ = 0;
};

Result<DeviceInfo> describe(int32_t index) {
  int n = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&n); error != cudaSuccess)
    return Error{Errc::unsupported, std::string("no CUDA device can be used: ") + cudaGetErrorString(error)};
  if (index < 0 || index >= n)
    return Error{Errc::unsupported,
                 "there is no CUDA device " + std::to_string(index) + ", the machine has " + std::to_string(n)};
  cudaDeviceProp p{};
  cuda_ok(cudaGetDeviceProperties(&p, index), "cudaGetDeviceProperties");
  cuda_ok(cudaSetDevice(index), "cudaSetDevice");
  size_t free_bytes = 0, total = 0;
  cuda_ok(cudaMemGetInfo(&free_bytes, &total), "cudaMemGetInfo");
  return DeviceInfo{p.name,
                    p.major,
                    p.minor,
                    p.multiProcessorCount,
                    static_cast<int64_t>(total),
                    static_cast<int64_t>(free_bytes),
                    p.l2CacheSize};
}

}  // namespace

Result<std::unique_ptr<Device>> Device::open(int32_t index, int64_t reserve_bytes) {
  try {
    GANNET_ASSIGN(DeviceInfo info, describe(index));
    if (info.major < 9)
      return Error{Errc::unsupported, info.name + " has compute capability " + std::to_string(info.major) + "." +
                                          std::to_string(info.minor) + ", the kernels need 9.0"};
    if (reserve_bytes == 0) reserve_bytes = info.free_bytes / 10 * 9;
    if (reserve_bytes > info.free_bytes)
      return Error{Errc::no_capacity, info.name + " has " + std::to_string(info.free_bytes) + " free bytes, " +
                                          std::to_string(reserve_bytes) + " are needed"};
    return std::unique_ptr<Device>(new CudaDevice(std::move(info), reserve_bytes));
  } catch (const DeviceFault& fault) {
    return Error{Errc::unsupported, fault.what()};
  }
}

}  // namespace gannet
