// A CUDA runtime without a device, for LD_PRELOAD: enough of libcudart and libcuda for PyTorch's
// CUDACachingAllocator to run on a machine without a GPU. Memory is only addresses; nothing is ever
// computed. record_snapshots.py builds and uses it.
//
// FAKE_CUDA_MIB: memory of the device. FAKE_CUDA_DESCENDING=1: addresses go down from segment to
// segment, so that "oldest" and "lowest" differ.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace {

constexpr std::uint64_t kPage = 2 << 20;
constexpr std::uint64_t kMiddle = 0x7f0000000000;

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Device {
  std::uint64_t total = setting("FAKE_CUDA_MIB", 16384) << 20;
  std::uint64_t used = 0;
  bool descending = setting("FAKE_CUDA_DESCENDING", 0) != 0;
  std::uint64_t top = kMiddle, bottom = kMiddle;
  std::map<std::uint64_t, std::uint64_t> bytes;  ///< of an address or a handle
  std::uint64_t next_handle = 4096;
  cudaError_t last_error = cudaSuccess;
  bool events_pending = false;

  std::uint64_t address(std::uint64_t size) {
    size = (size + kPage - 1) / kPage * kPage;
    if (descending) return bottom -= size;
    top += size;
    return top - size;
  }
  std::uint64_t handle() { return next_handle += 16; }
  bool take(std::uint64_t size) {
    if (used + size > total) return false;
    used += size;
    return true;
  }
  void give_back(std::uint64_t key) {
    used -= bytes[key];
    bytes.erase(key);
  }
};

Device& device() {
  static Device one;
  return one;
}

cudaError_t fail(cudaError_t error) { return device().last_error = error; }

template <class Handle>
Handle as_handle(std::uint64_t number) {
  return reinterpret_cast<Handle>(number);
}

// The driver, as the allocator's expandable segments use it.

CUresult reserve(CUdeviceptr* address, std::size_t size, std::size_t, CUdeviceptr,
                 unsigned long long) {
  *address = device().address(size);
  return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp*,
                unsigned long long) {
  if (!device().take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = device().handle();
  device().bytes[*handle] = size;
  return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle handle) {
  device().give_back(handle);
  return CUDA_SUCCESS;
}
CUresult device_number(CUdevice* number, int) {
  *number = 0;
  return CUDA_SUCCESS;
}
CUresult attribute(int* value, CUdevice_attribute, CUdevice) {
  *value = 0;
  return CUDA_SUCCESS;
}
CUresult error_string(CUresult, const char** text) {
  *text = "no device";
  return CUDA_SUCCESS;
}
CUresult nothing() { return CUDA_SUCCESS; }
CUresult unsupported() { return CUDA_ERROR_NOT_SUPPORTED; }

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

extern "C" {

/// Whether events of other streams are still pending; record_snapshots.py switches it.
void fake_cuda_set_events_pending(int pending) { device().events_pending = pending != 0; }

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  static const std::map<std::string, void*> kKnown{{"cuMemAddressReserve", address_of(reserve)},
                                                   {"cuMemAddressFree", address_of(nothing)},
                                                   {"cuMemCreate", address_of(create)},
                                                   {"cuMemRelease", address_of(release)},
                                                   {"cuMemMap", address_of(nothing)},
                                                   {"cuMemUnmap", address_of(nothing)},
                                                   {"cuMemSetAccess", address_of(nothing)},
                                                   {"cuDeviceGet", address_of(device_number)},
                                                   {"cuDeviceGetAttribute", address_of(attribute)},
                                                   {"cuGetErrorString", address_of(error_string)}};
  const auto known = kKnown.find(name);
  *function = known == kKnown.end() ? address_of(unsupported) : known->second;
  if (found) *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}

// Looked up by name in libcuda.so.1 and libnvidia-ml.so.1.
CUresult fake_primary_context(CUdevice, unsigned* flags, int* active) {
  if (flags) *flags = 0;
  *active = 1;
  return CUDA_SUCCESS;
}
asm(".globl cuDevicePrimaryCtxGetState\n"
    ".type cuDevicePrimaryCtxGetState, @function\n"
    "cuDevicePrimaryCtxGetState: jmp fake_primary_context@PLT\n");
int nvmlInit_v2() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2() { return 0; }
int nvmlDeviceGetGpuFabricInfoV() { return 0; }
constexpr int kNvmlNotSupported = 3;
int nvmlDeviceGetNvLinkRemoteDeviceType() { return kNvmlNotSupported; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2() { return kNvmlNotSupported; }
int nvmlDeviceGetComputeRunningProcesses() { return kNvmlNotSupported; }
int nvmlSystemGetCudaDriverVersion_v2() { return kNvmlNotSupported; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strcpy(properties->name, "no device");
  properties->totalGlobalMem = device().total;
  properties->major = 8;
  properties->multiProcessorCount = 1;
  properties->warpSize = 32;
  properties->maxThreadsPerMultiProcessor = 2048;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = device().total;
  *free = device().total - device().used;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** address, std::size_t size) {
  if (!device().take(size)) return fail(cudaErrorMemoryAllocation);
  const std::uint64_t begin = device().address(size);
  device().bytes[begin] = size;
  *address = as_handle<void*>(begin);
  return cudaSuccess;
}
cudaError_t cudaFree(void* address) {
  if (address) device().give_back(reinterpret_cast<std::uint64_t>(address));
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void*, int, std::size_t, cudaStream_t) { return cudaSuccess; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = device().last_error;
  device().last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return device().last_error; }
const char* cudaGetErrorString(cudaError_t) { return "no device"; }
const char* cudaGetErrorName(cudaError_t) { return "no device"; }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = as_handle<cudaStream_t>(device().handle());
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t, cudaStreamCaptureStatus* status,
                                     unsigned long long* id, cudaGraph_t*, const cudaGraphNode_t**,
                                     const cudaGraphEdgeData**, std::size_t*) {
  *status = cudaStreamCaptureStatusNone;
  if (id) *id = 0;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = as_handle<cudaEvent_t>(device().handle());
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t) {
  return device().events_pending ? fail(cudaErrorNotReady) : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

}  // extern "C"
