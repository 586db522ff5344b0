// The table of the runtime that is linked into the plug-in.
#include "cuda/driver.h"

#include <cuda_runtime_api.h>

namespace shardarray::cuda {
namespace {

template <class To, class From> To* handle(From* p) { return reinterpret_cast<To*>(p); }
cudaStream_t native(Stream s) { return handle<CUstream_st>(s); }
cudaEvent_t native(Event e) { return handle<CUevent_st>(e); }

Status properties_of(GpuProperties* to, int gpu) {
  cudaDeviceProp all{};
  const Status status = cudaGetDeviceProperties(&all, gpu);
  if (status == ok) *to = {all.name, all.major, all.minor};
  return status;
}

Status create_stream(Stream* to) {
  cudaStream_t fresh{};
  const Status status = cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking);
  *to = handle<StreamObject>(fresh);
  return status;
}
Status create_event(Event* to) {
  cudaEvent_t fresh{};
  const Status status = cudaEventCreateWithFlags(&fresh, cudaEventDisableTiming);
  *to = handle<EventObject>(fresh);
  return status;
}
Status load_library(Library* to, const void* image) {
  cudaLibrary_t fresh{};
  const Status status = cudaLibraryLoadData(&fresh, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
  *to = handle<LibraryObject>(fresh);
  return status;
}
Status find_kernel(KernelHandle* to, Library library, const char* name) {
  cudaKernel_t found{};
  const Status status = cudaLibraryGetKernel(&found, handle<CUlib_st>(library), name);
  *to = handle<KernelObject>(found);
  return status;
}
Status launch_kernel(KernelHandle kernel, const Grid& grid, void** arguments, Stream stream) {
  return cudaLaunchKernel(static_cast<const void*>(kernel), dim3(grid.blocks, grid.items), dim3(grid.threads),
                          arguments, 0, native(stream));
}

const Driver runtime = {
    .driver_version = [](int* version) -> Status { return cudaDriverGetVersion(version); },
    .runtime_version = [](int* version) -> Status { return cudaRuntimeGetVersion(version); },
    .device_count = [](int* count) -> Status { return cudaGetDeviceCount(count); },
    .device_properties = properties_of,
    .set_device = [](int gpu) -> Status { return cudaSetDevice(gpu); },
    .malloc = [](void** to, std::size_t bytes) -> Status { return cudaMalloc(to, bytes); },
    .free = [](void* p) -> Status { return cudaFree(p); },
    .host_malloc = [](void** to, std::size_t bytes) -> Status { return cudaMallocHost(to, bytes); },
    .copy_async = [](void* to, const void* from, std::size_t bytes, Stream stream) -> Status {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, native(stream));
    },
    .fill_async = [](void* to, int byte, std::size_t bytes, Stream stream) -> Status {
      return cudaMemsetAsync(to, byte, bytes, native(stream));
    },
    .stream_create = create_stream,
    .stream_query = [](Stream stream) -> Status { return cudaStreamQuery(native(stream)); },
    .stream_synchronize = [](Stream stream) -> Status { return cudaStreamSynchronize(native(stream)); },
    .event_create = create_event,
    .event_record = [](Event event, Stream stream) -> Status {
      return cudaEventRecord(native(event), native(stream));
    },
    .event_synchronize = [](Event event) -> Status { return cudaEventSynchronize(native(event)); },
    .load_library = load_library,
    .find_kernel = find_kernel,
    .launch = launch_kernel,
    .last_error = []() -> Status { return cudaGetLastError(); },
    .error_name = [](Status status) { return cudaGetErrorName(static_cast<cudaError_t>(status)); },
    .error_text = [](Status status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); },
};

}  // namespace

const Driver& driver() { return runtime; }

}  // namespace shardarray::cuda
