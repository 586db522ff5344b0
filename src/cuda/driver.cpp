// The call table of the CUDA runtime linked into the plug-in.
#include "cuda/driver.h"

#include <cuda_runtime_api.h>

namespace shardarray::cuda {

int sort_pairs(void* own, std::size_t* own_bytes, const PairSort& sort, void* memory,
               void* stream);  // kernels/sort_pairs.cu

namespace {

template <class To, class From> To* handle(From* p) { return reinterpret_cast<To*>(p); }
cudaStream_t native(Stream s) { return handle<CUstream_st>(s); }
cudaEvent_t native(Event e) { return handle<CUevent_st>(e); }
cudaGraph_t native(GraphHandle g) { return handle<CUgraph_st>(g); }
cudaGraphExec_t native(GraphExec g) { return handle<CUgraphExec_st>(g); }

Status properties_of(GpuProperties* to, int gpu) {
  cudaDeviceProp all{};
  const Status status = cudaGetDeviceProperties(&all, gpu);
  if (status != ok) return status;
  *to = {all.name, all.major, all.minor, all.totalGlobalMem, all.multiProcessorCount, {}};
  constexpr const char* digits = "0123456789abcdef";
  for (const char c : all.uuid.bytes) {
    const auto byte = static_cast<unsigned char>(c);
    to->uuid += {digits[byte >> 4], digits[byte & 15]};
  }
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
Status launch_kernel(KernelHandle kernel, const Grid& grid, void** arguments, Stream stream, bool early) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.blocks, grid.items);
  config.blockDim = dim3(grid.threads);
  config.stream = native(stream);
  config.attrs = &overlap;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelExC(&config, static_cast<const void*>(kernel), arguments);
}

Status max_active_clusters(int* count, KernelHandle kernel, std::uint32_t blocks, std::uint32_t threads) {
  cudaLaunchAttribute size{};
  size.id = cudaLaunchAttributeClusterDimension;
  size.val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.attrs = &size;
  config.numAttrs = 1;
  return cudaOccupancyMaxActiveClusters(count, reinterpret_cast<const void*>(kernel), &config);
}

// Relaxed: other threads, and libraries that allocate at their first use, must not break the capture.
Status begin_capture(Stream stream) {
  return cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeRelaxed);
}
Status last_captured(GraphNode* to, Stream stream) {
  cudaStreamCaptureStatus state{};
  const cudaGraphNode_t* last = nullptr;
  std::size_t count = 0;
  const Status status =
      cudaStreamGetCaptureInfo(native(stream), &state, nullptr, nullptr, &last, nullptr, &count);
  if (status == ok) *to = count == 1 ? handle<GraphNodeObject>(last[0]) : nullptr;
  return status;
}
Status end_capture(GraphHandle* to, Stream stream) {
  cudaGraph_t graph{};
  const Status status = cudaStreamEndCapture(native(stream), &graph);
  *to = handle<GraphObject>(graph);
  return status;
}
Status instantiate(GraphExec* to, GraphHandle graph) {
  cudaGraphExec_t fresh{};
  const Status status = cudaGraphInstantiate(&fresh, native(graph), 0);
  *to = handle<GraphExecObject>(fresh);
  return status;
}
Status set_arguments(GraphExec exec, GraphNode node, KernelHandle kernel, const Grid& grid,
                     void** arguments) {
  cudaKernelNodeParams p{};
  p.func = static_cast<void*>(kernel);  // a cudaKernel_t is accepted as is
  p.gridDim = dim3(grid.blocks, grid.items);
  p.blockDim = dim3(grid.threads);
  p.kernelParams = arguments;
  return cudaGraphExecKernelNodeSetParams(native(exec), handle<CUgraphNode_st>(node), &p);
}
Status update_graph(GraphExec exec, GraphHandle graph) {
  cudaGraphExecUpdateResultInfo why{};
  return cudaGraphExecUpdate(native(exec), native(graph), &why);
}

const Driver runtime = {
    .driver_version = [](int* version) -> Status { return cudaDriverGetVersion(version); },
    .runtime_version = [](int* version) -> Status { return cudaRuntimeGetVersion(version); },
    .device_count = [](int* count) -> Status { return cudaGetDeviceCount(count); },
    .device_properties = properties_of,
    .set_device = [](int gpu) -> Status { return cudaSetDevice(gpu); },
    .get_device = [](int* gpu) -> Status { return cudaGetDevice(gpu); },
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
    .event_query = [](Event event) -> Status { return cudaEventQuery(native(event)); },
    .stream_wait_event = [](Stream stream, Event event) -> Status {
      return cudaStreamWaitEvent(native(stream), native(event), 0);
    },
    .can_access_peer = [](int* can, int gpu, int peer) -> Status {
      return cudaDeviceCanAccessPeer(can, gpu, peer);
    },
    .enable_peer_access = [](int peer) -> Status {
      const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
      if (status != cudaErrorPeerAccessAlreadyEnabled) return status;
      cudaGetLastError();  // clears the error
      return cudaSuccess;
    },
    .load_library = load_library,
    .find_kernel = find_kernel,
    .max_active_clusters = max_active_clusters,
    .launch = launch_kernel,
    .sort_pairs = [](void* own, std::size_t* own_bytes, const PairSort& sort, void* memory,
                     Stream stream) -> Status { return sort_pairs(own, own_bytes, sort, memory, stream); },
    .begin_capture = begin_capture,
    .last_captured = last_captured,
    .end_capture = end_capture,
    .graph_destroy = [](GraphHandle graph) -> Status { return cudaGraphDestroy(native(graph)); },
    .graph_instantiate = instantiate,
    .graph_set_arguments = set_arguments,
    .graph_update = update_graph,
    .graph_launch = [](GraphExec exec, Stream stream) -> Status {
      return cudaGraphLaunch(native(exec), native(stream));
    },
    .graph_exec_destroy = [](GraphExec exec) -> Status { return cudaGraphExecDestroy(native(exec)); },
    .last_error = []() -> Status { return cudaGetLastError(); },
    .error_name = [](Status status) { return cudaGetErrorName(static_cast<cudaError_t>(status)); },
    .error_text = [](Status status) { return cudaGetErrorString(static_cast<cudaError_t>(status)); },
};

}  // namespace

const Driver& driver() { return runtime; }

}  // namespace shardarray::cuda
