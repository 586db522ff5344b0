// The CUDA runtime calls that the backend makes, as a table: the plug-in fills it from the runtime linked into it, the tests' plug-in from
// a driver in host memory. Nothing else here includes CUDA's headers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cuda/pair_sort.h"

namespace shardarray::cuda {

using Status = int;  ///< the runtime's error numbers
inline constexpr Status ok = 0, out_of_memory = 2, no_device = 100, not_ready = 600;

using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Library = struct LibraryObject*;
using KernelHandle = struct KernelObject*;
using GraphHandle = struct GraphObject*;
using GraphNode = struct GraphNodeObject*;
using GraphExec = struct GraphExecObject*;

struct GpuProperties {
  std::string name;
  int major = 0, minor = 0;  ///< of its architecture
  std::uint64_t memory = 0;  ///< bytes
  int multiprocessors = 0;
  std::string uuid;  ///< globally unique, in hexadecimal digits
};

struct Grid {
  std::uint32_t blocks = 1, items = 1, threads = 1;  ///< x and y of the grid; of a block
};

/// Each member is the runtime call of that name, for the thread's current GPU.
struct Driver {
  Status (*driver_version)(int* version);   ///< 1000 * major + 10 * minor; 0: there is no driver
  Status (*runtime_version)(int* version);  ///< the driver must have at least its major version
  Status (*device_count)(int* count);
  Status (*device_properties)(GpuProperties* to, int gpu);
  Status (*set_device)(int gpu);
  Status (*get_device)(int* gpu);
  Status (*malloc)(void** to, std::size_t bytes);
  Status (*free)(void* p);
  Status (*host_malloc)(void** to, std::size_t bytes);  ///< pinned
  Status (*copy_async)(void* to, const void* from, std::size_t bytes, Stream stream);
  Status (*fill_async)(void* to, int byte, std::size_t bytes, Stream stream);
  Status (*stream_create)(Stream* to);
  Status (*stream_query)(Stream stream);  ///< not_ready: work is in flight
  Status (*stream_synchronize)(Stream stream);
  Status (*event_create)(Event* to);
  Status (*event_record)(Event event, Stream stream);
  Status (*event_synchronize)(Event event);
  Status (*event_query)(Event event);  ///< not_ready: work before it is in flight
  /// Later work in the stream waits for the event, which may be on any GPU.
  Status (*stream_wait_event)(Stream stream, Event event);
  Status (*can_access_peer)(int* can, int gpu, int peer);
  Status (*enable_peer_access)(int peer);  ///< kernels of the current GPU may access its memory
  Status (*load_library)(Library* to, const void* image);
  Status (*find_kernel)(KernelHandle* to, Library library, const char* name);
  /// How many clusters of `blocks` blocks with `threads` threads each can run at once.
  Status (*max_active_clusters)(int* count, KernelHandle kernel, std::uint32_t blocks, std::uint32_t threads);
  /// `arguments`: the address of each; read before it returns. `early`: directly after another kernel on the stream, the kernel may start
  /// while that runs, and waits for it itself (programmatic dependent launch, sm_90 and later).
  Status (*launch)(KernelHandle kernel, const Grid& grid, void** arguments, Stream stream, bool early);
  /// CUB's sort of the pairs in `memory`, by kernels and fills; `own`: its workspace of `own_bytes`. Null: stores the size needed.
  Status (*sort_pairs)(void* own, std::size_t* own_bytes, const PairSort& sort, void* memory, Stream stream);
  /// Later work in the stream is captured into a graph, not run.
  Status (*begin_capture)(Stream stream);
  Status (*last_captured)(GraphNode* to, Stream stream);
  Status (*end_capture)(GraphHandle* to, Stream stream);  ///< null: the capture was invalidated
  Status (*graph_destroy)(GraphHandle graph);
  Status (*graph_instantiate)(GraphExec* to, GraphHandle graph);
  /// `node`: a kernel node of the graph that was instantiated. Launches already made are not affected.
  Status (*graph_set_arguments)(GraphExec exec, GraphNode node, KernelHandle kernel, const Grid& grid,
                                void** arguments);
  /// Takes the parameters of `graph`; fails if its nodes differ.
  Status (*graph_update)(GraphExec exec, GraphHandle graph);
  Status (*graph_launch)(GraphExec exec, Stream stream);
  Status (*graph_exec_destroy)(GraphExec exec);  ///< frees it once it has run
  /// The thread's last error, which this clears.
  Status (*last_error)();
  const char* (*error_name)(Status status);
  const char* (*error_text)(Status status);
};
const Driver& driver();

/// The kernels for all architectures, as load_library takes them.
const void* kernel_image();

}  // namespace shardarray::cuda
