#include "runtime/device.h"

namespace gannet {

Result<std::unique_ptr<Device>> Device::open(int32_t, int64_t) {
  return Error{Errc::unsupported, "this gannet was built without CUDA (make cuda builds it with)"};
}

}  // namespace gannet
