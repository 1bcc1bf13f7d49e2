// Lets PyTorch dispatch fake tensors as on CUDA on a machine that has no GPU.
//
// Two things stand in PyTorch's way there. The CUDA hooks of ATen say that there is no CUDA: we register hooks of our own
// with a higher priority, which must happen before `import torch` (a CUDA build registers its own then). And autograd
// wants a device guard for CUDA: stoker_register_guard(), called after the import, installs one that does nothing.
//
// No kernel can run under this: it is for fake tensors, in a process that does nothing else. `override` is left out on
// purpose, so that the file compiles with every PyTorch from 2.4 although the interfaces gain and lose members.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

constexpr long kCudnnVersion = 91002;  // any cuDNN 9: PyTorch only compares it with minimum versions

c10::Device the_device() { return c10::Device(c10::DeviceType::CUDA, 0); }

struct Guard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device getDevice() const { return the_device(); }
  c10::Device exchangeDevice(c10::Device) const { return the_device(); }
  c10::DeviceIndex deviceCount() const noexcept { return 1; }
  c10::Stream getStream(c10::Device) const noexcept {
    return c10::Stream(c10::Stream::DEFAULT, the_device());
  }
  c10::Stream getDefaultStream(c10::Device device) const { return getStream(device); }
  c10::Stream getNewStream(c10::Device device, int) const { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept { return stream; }
  void record(void** event, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const {
    *event = reinterpret_cast<void*>(1);
  }
  void block(void*, const c10::Stream&) const {}
  bool queryEvent(void*) const { return true; }
};
Guard guard;

}  // namespace

struct StokerCudaHooks : at::CUDAHooksInterface {
  explicit StokerCudaHooks(at::CUDAHooksArgs) {}
  void init() const {}
  void initCUDA() const {}
  bool isBuilt() const { return true; }
  bool isAvailable() const { return true; }
  bool hasCUDA() const { return true; }
  bool hasCUDART() const { return true; }
  bool hasCuDNN() const { return true; }
  bool hasCuBLASLt() const { return true; }
  bool compiledWithCuDNN() const { return true; }
  bool compiledWithMIOpen() const { return false; }
  long versionCuDNN() const { return kCudnnVersion; }
  long versionRuntimeCuDNN() const { return kCudnnVersion; }
  double batchnormMinEpsilonCuDNN() const { return 1e-5; }  // CUDNN_BN_MIN_EPSILON
  bool supportsDilatedConvolutionWithCuDNN() const { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const { return true; }
  bool supportsBFloat16RNNWithCuDNN() const { return true; }
  int getNumGPUs() const { return 1; }
  c10::DeviceIndex deviceCount() const { return 1; }
  c10::DeviceIndex getCurrentDevice() const { return 0; }
  c10::DeviceIndex current_device() const { return 0; }
  void setCurrentDevice(c10::DeviceIndex) const {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const { return 0; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const { return 0; }
  void deviceSynchronize(c10::DeviceIndex) const {}
  bool hasPrimaryContext(c10::DeviceIndex) const { return true; }
};

namespace at {
C10_REGISTER_CLASS_WITH_PRIORITY(CUDAHooksRegistry, CUDAHooks, c10::REGISTRY_PREFERRED,
                                 ::StokerCudaHooks)
}

extern "C" void stoker_register_guard() {
  static c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::CUDA, &guard);
}
