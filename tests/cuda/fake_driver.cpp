// The table of a driver whose GPUs are made of host memory. It refuses what CUDA refuses.
#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "cuda/driver.h"
#include "cuda/host_kernels.h"
#include "fake_calls.h"
#include "fake_code.h"
#include "fake_control.h"
#include "fake_gpu.h"
#include "fake_launch.h"
#include "fake_statuses.h"

namespace shardarray::cuda {
namespace {

using testing::FakeBlocks;
using testing::FakeCapture;
using testing::FakeLaunch;
using testing::FakeNodes;
using testing::FakePiece;
using testing::FakeStream;
using testing::FakeWork;

int fake_setting(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}
const int gpu_count = fake_setting("SHARDARRAY_FAKE_GPUS", 1);

struct FakeEvent {
  int gpu = 0;
  FakeStream* stream = nullptr;  // null: not recorded yet
  std::uint64_t number = 0;
  std::shared_ptr<FakeCapture> capture;  // where it was recorded, behind `last`; then there is no stream
  std::vector<std::size_t> last;
};

/// Never destroyed, as its streams' threads.
struct FakeDriver {
  FakeBlocks device, pinned;
  FakeWork work;
  std::mutex mutex;  // of what follows
  std::vector<FakeStream*> streams;
  std::uint64_t calls = 0;
  int to_failure = -1, failure = 0;  // the call after so many fails
  std::string failing;  // the next `named_failures` calls of this name fail, with `named_failure`
  int named_failures = 0, named_failure = 0;
  std::string last_failed;
  std::set<KernelHandle> printed;  // kernels of loaded code
  std::map<KernelHandle, std::uint32_t>
      bases;  // of kernels of whole programs: addresses that come with a launch
  std::uint64_t printed_launches = 0, graph_launches = 0, launches = 0;
  std::mt19937 random{11};
};
FakeDriver& fake() {
  static FakeDriver& f = *new FakeDriver;
  return f;
}
template <std::uint64_t FakeDriver::*number> std::uint64_t count_of() {
  const std::lock_guard lock(fake().mutex);
  return fake().*number;
}
thread_local int current_gpu = 0;
thread_local Status latest = ok;

Status failed(Status status) { return latest = status; }
Status failed_if(Status status) { return status == ok ? ok : failed(status); }

/// What a call begins with: the failure that was ordered for it, or that of earlier work on the thread's GPU.
Status enter(const char* call) {
  FakeDriver& f = fake();
  std::vector<FakeStream*> streams;
  {
    const std::lock_guard lock(f.mutex);
    f.calls++;
    if (f.to_failure >= 0 && f.to_failure-- == 0) {
      f.last_failed = call;
      return failed(f.failure);
    }
    if (f.named_failures > 0 && f.failing == call) {
      f.named_failures--;
      f.last_failed = call;
      return failed(f.named_failure);
    }
    streams = f.streams;
  }
  for (FakeStream* const s : streams)
    if (s->gpu == current_gpu && s->status() != ok) return failed(s->status());
  return ok;
}

FakeStream& stream_of(Stream s) { return *reinterpret_cast<FakeStream*>(s); }
/// Waiting for what is captured, or asking about it, spoils the capture.
bool spoils(FakeStream& s) {
  if (s.capture == nullptr) return false;
  s.capture->spoiled = true;
  return true;
}
bool spoils(const FakeEvent& e) {
  if (e.capture == nullptr) return false;
  e.capture->spoiled = true;
  return true;
}
FakeEvent& event_of(Event e) { return *reinterpret_cast<FakeEvent*>(e); }

bool fits(const void* p, std::size_t bytes) {
  return !FakeBlocks::on_device(p) || fake().device.rest(p) >= bytes;
}

Status allocate_on_device(void** to, std::size_t bytes) {
  if (const Status s = enter("cudaMalloc")) return s;
  *to = fake().device.add(bytes, FakeBlocks::tag);
  return *to != nullptr ? ok : failed(out_of_memory);
}
// Without a wait: what still uses the block then reads rubbish.
Status free_on_device(void* p) {
  if (const Status s = enter("cudaFree")) return s;
  return fake().device.remove(p) ? ok : failed(invalid_value);
}
Status allocate_pinned(void** to, std::size_t bytes) {
  if (const Status s = enter("cudaMallocHost")) return s;
  *to = fake().pinned.add(bytes, 0);
  return *to != nullptr ? ok : failed(out_of_memory);
}

// Pinned memory is read and written when the copy is made, other memory of the host before the call returns.
Status copy_later(void* to, const void* from, std::size_t bytes, Stream s) {
  if (const Status status = enter("cudaMemcpyAsync")) return status;
  FakeStream& stream = stream_of(s);
  if (stream.gpu != current_gpu) return failed(invalid_handle);
  if (spoils(stream))
    return failed(not_while_capturing);  // a copy from the host would be made again with what is there then
  if (!fits(to, bytes) || !fits(from, bytes)) return failed(invalid_value);
  const bool paged_from = !FakeBlocks::on_device(from) && fake().pinned.rest(from) < bytes,
             paged_to = !FakeBlocks::on_device(to) && fake().pinned.rest(to) < bytes;
  std::vector<std::byte> read;
  if (paged_from)
    read.assign(static_cast<const std::byte*>(from), static_cast<const std::byte*>(from) + bytes);
  const std::uint64_t number =
      stream.ask([to = FakeBlocks::host(to), from = FakeBlocks::host(from), bytes, paged_from,
                  read = std::move(read)] { std::memmove(to, paged_from ? read.data() : from, bytes); });
  if (!paged_to) return ok;
  return failed_if(stream.wait(number));
}
Status fill_later(void* to, int byte, std::size_t bytes, Stream s) {
  if (const Status status = enter("cudaMemsetAsync")) return status;
  if (stream_of(s).gpu != current_gpu) return failed(invalid_handle);
  if (!fits(to, bytes)) return failed(invalid_value);
  stream_of(s).ask([=, to = FakeBlocks::host(to)] { std::memset(to, byte, bytes); });
  return ok;
}

Status make_stream(Stream* to) {
  if (const Status s = enter("cudaStreamCreateWithFlags")) return s;
  auto* const fresh = new FakeStream(fake().work, current_gpu);
  const std::lock_guard lock(fake().mutex);
  fake().streams.push_back(fresh);
  *to = reinterpret_cast<Stream>(fresh);
  return ok;
}
Status ask_stream(Stream s) {
  if (const Status status = enter("cudaStreamQuery")) return status;
  if (spoils(stream_of(s))) return failed(not_while_capturing);
  if (const Status status = stream_of(s).status()) return failed(status);
  return stream_of(s).busy() ? not_ready : ok;
}
Status wait_for_stream(Stream s) {
  if (const Status status = enter("cudaStreamSynchronize")) return status;
  if (spoils(stream_of(s))) return failed(not_while_capturing);
  return failed_if(stream_of(s).wait());
}
Status make_event(Event* to) {
  if (const Status s = enter("cudaEventCreateWithFlags")) return s;
  *to = reinterpret_cast<Event>(new FakeEvent{current_gpu, nullptr, 0, nullptr, {}});
  return ok;
}
Status record_event(Event e, Stream s) {
  if (const Status status = enter("cudaEventRecord")) return status;
  if (event_of(e).gpu != stream_of(s).gpu) return failed(invalid_handle);
  FakeStream& stream = stream_of(s);
  if (stream.capture != nullptr) event_of(e) = {stream.gpu, nullptr, 0, stream.capture, stream.last};
  else event_of(e) = {stream.gpu, &stream, stream.ask([] {}), nullptr, {}};
  return ok;
}
Status wait_for_event(Event e) {
  if (const Status status = enter("cudaEventSynchronize")) return status;
  const FakeEvent event = event_of(e);
  if (spoils(event)) return failed(captured_event);
  if (event.stream == nullptr) return ok;
  return failed_if(event.stream->wait(event.number));
}

Status ask_event(Event e) {
  if (const Status status = enter("cudaEventQuery")) return status;
  const FakeEvent event = event_of(e);
  if (spoils(event)) return failed(captured_event);
  if (event.stream == nullptr) return ok;
  if (const Status status = event.stream->status()) return failed(status);
  return event.stream->passed(event.number) ? ok : not_ready;
}

void captures(FakeStream& stream, std::shared_ptr<FakeCapture> capture) {
  capture->streams.push_back(&stream);
  stream.capture = std::move(capture);
  stream.last.clear();
}
/// The stream is captured from now on where the event was, if it is not yet.
Status joins(FakeStream& stream, const FakeEvent& event) {
  if (event.capture->ended) return failed(captured_event);
  if (stream.capture != nullptr && stream.capture != event.capture) {
    stream.capture->spoiled = event.capture->spoiled = true;
    return failed(captures_merged);
  }
  if (stream.capture == nullptr) captures(stream, event.capture);
  for (const std::size_t k : event.last)
    if (std::find(stream.last.begin(), stream.last.end(), k) == stream.last.end()) stream.last.push_back(k);
  stream.capture->add(nullptr, nullptr, stream.gpu, stream.last);  // so that it must be followed itself
  return ok;
}
Status stream_waits(Stream s, Event e) {
  if (const Status status = enter("cudaStreamWaitEvent")) return status;
  if (stream_of(s).gpu != current_gpu) return failed(invalid_handle);
  FakeStream& stream = stream_of(s);
  const FakeEvent event = event_of(e);
  if (event.capture != nullptr) return joins(stream, event);
  if (event.stream == nullptr) return ok;
  if (spoils(stream)) return failed(not_captured);
  stream.ask([event] { event.stream->wait(event.number); });
  return ok;
}
Status can_reach(int* can, int gpu, int peer) {
  if (const Status status = enter("cudaDeviceCanAccessPeer")) return status;
  *can = gpu != peer && fake_setting("SHARDARRAY_FAKE_PEERS", 1) != 0 ? 1 : 0;
  return ok;
}
Status reach(int peer) {
  if (const Status status = enter("cudaDeviceEnablePeerAccess")) return status;
  return peer != current_gpu && peer < gpu_count ? ok : failed(invalid_value);
}

Status load_code(Library* to, const void* image) {
  if (const Status s = enter("cudaLibraryLoadData")) return s;
  const bool own = image == kernel_image();
  *to = reinterpret_cast<Library>(own ? const_cast<void*>(image) : testing::open_fake_code(image));
  return *to != nullptr ? ok : failed(invalid_image);
}
Status find_host_kernel(KernelHandle* to, Library library, const char* name) {
  if (const Status s = enter("cudaLibraryGetKernel")) return s;
  if (static_cast<const void*>(library) == kernel_image()) {
    *to = reinterpret_cast<KernelHandle>(host_kernel(name));
  } else {
    *to = reinterpret_cast<KernelHandle>(dlsym(library, name));
    const std::lock_guard lock(fake().mutex);
    fake().printed.insert(*to);
    const void* const bases = dlsym(library, (name + std::string("_bases")).c_str());
    if (bases != nullptr) fake().bases[*to] = *static_cast<const std::uint32_t*>(bases);
  }
  return *to != nullptr ? ok : failed(no_symbol);
}

void count_launch(const void* kernel) {
  const std::lock_guard lock(fake().mutex);
  fake().launches++;
  fake().printed_launches += fake().printed.count(static_cast<KernelHandle>(const_cast<void*>(kernel)));
}
bool is_grid(const Grid& grid) {
  const auto whole = [](std::uint32_t n, std::uint32_t most) { return n >= 1 && n <= most; };
  return whole(grid.blocks, 0x7fffffff) && whole(grid.items, 65535) && whole(grid.threads, 1024);
}
FakeLaunch launch_of(KernelHandle kernel, const Grid& grid, void** arguments) {
  FakeLaunch l = {
      reinterpret_cast<HostKernel>(kernel),    grid, *static_cast<const std::byte**>(arguments[0]),
      *static_cast<std::byte**>(arguments[1]), {},   {}};
  const std::lock_guard lock(fake().mutex);
  const auto* const addresses = static_cast<const std::uint64_t*>(arguments[2]);
  if (const auto program = fake().bases.find(kernel); program != fake().bases.end())
    l.program_bases.assign(addresses, addresses + 1 + program->second);
  else l.bases = *static_cast<const device::Bases*>(arguments[2]);
  return l;
}
Status launch_later(KernelHandle kernel, const Grid& grid, void** arguments, Stream s) {
  if (const Status status = enter("cudaLaunchKernel")) return status;
  FakeStream& stream = stream_of(s);
  if (stream.gpu != current_gpu) return failed(invalid_handle);
  if (!is_grid(grid)) return failed(invalid_grid);
  if (stream.capture == nullptr) count_launch(kernel);
  stream.ask([launch = launch_of(kernel, grid, arguments)] { launch.run(); }, kernel);
  return ok;
}

// ---------------------------------------------------------------- graphs

/// Also what is instantiated of one. The handle of a node is its place, from 1.
struct FakeGraph {
  FakeNodes nodes;
};
FakeGraph& graph_of(GraphHandle g) { return *reinterpret_cast<FakeGraph*>(g); }
FakeGraph& graph_of(GraphExec g) { return *reinterpret_cast<FakeGraph*>(g); }

Status begin_fake_capture(Stream s) {
  if (const Status status = enter("cudaStreamBeginCapture")) return status;
  FakeStream& stream = stream_of(s);
  if (stream.capture != nullptr || stream.busy()) return failed(invalid_value);
  captures(stream, std::make_shared<FakeCapture>());
  return ok;
}
Status last_fake_node(GraphNode* to, Stream s) {
  if (const Status status = enter("cudaStreamGetCaptureInfo")) return status;
  const FakeStream& stream = stream_of(s);
  if (stream.capture == nullptr || stream.last.size() != 1) return failed(invalid_value);
  *to = reinterpret_cast<GraphNode>(stream.last[0] + 1);
  return ok;
}
Status end_fake_capture(GraphHandle* to, Stream s) {
  FakeStream& stream = stream_of(s);
  *to = nullptr;
  const std::shared_ptr<FakeCapture> capture = stream.capture;
  if (capture == nullptr) return failed(invalid_value);
  if (capture->streams[0] != &stream) return (capture->spoiled = true, failed(other_origin));
  const bool joined = capture->all_before(stream.last);
  capture->ended = true;
  for (FakeStream* const each : capture->streams) each->capture = nullptr;
  if (const Status status = enter("cudaStreamEndCapture")) return status;  // ended nevertheless
  if (capture->spoiled) return failed(capture_spoiled);
  if (!joined) return failed(not_joined);
  *to = reinterpret_cast<GraphHandle>(new FakeGraph{std::move(capture->nodes)});
  return ok;
}
Status make_exec(GraphExec* to, GraphHandle graph) {
  if (const Status status = enter("cudaGraphInstantiate")) return status;
  *to = reinterpret_cast<GraphExec>(new FakeGraph(graph_of(graph)));
  return ok;
}
Status set_fake_arguments(GraphExec exec, GraphNode node, KernelHandle kernel, const Grid& grid,
                          void** arguments) {
  if (const Status status = enter("cudaGraphExecKernelNodeSetParams")) return status;
  auto& nodes = graph_of(exec).nodes;
  const std::size_t at = reinterpret_cast<std::uintptr_t>(node) - 1;
  if (at >= nodes.size() || nodes[at].kernel != kernel || nodes[at].gpu != current_gpu || !is_grid(grid))
    return failed(invalid_value);
  nodes[at].work = [launch = launch_of(kernel, grid, arguments)] { launch.run(); };
  return ok;
}
Status update_fake_graph(GraphExec exec, GraphHandle graph) {
  if (const Status status = enter("cudaGraphExecUpdate")) return status;
  auto &mine = graph_of(exec).nodes, &theirs = graph_of(graph).nodes;
  const auto like = [](const FakePiece& a, const FakePiece& b) { return a.is_like(b); };
  if (!std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(), like)) return failed(other_nodes);
  mine = theirs;
  return ok;
}
Status launch_fake_graph(GraphExec exec, Stream s) {
  if (const Status status = enter("cudaGraphLaunch")) return status;
  if (stream_of(s).gpu != current_gpu) return failed(invalid_handle);
  const FakeNodes& nodes = graph_of(exec).nodes;
  std::vector<std::size_t> order;
  {
    const std::lock_guard lock(fake().mutex);
    fake().graph_launches++;
    order = any_order(nodes, fake().random);
  }
  for (const std::size_t k : order) {
    if (nodes[k].work == nullptr) continue;
    count_launch(nodes[k].kernel);
    stream_of(s).ask(nodes[k].work, nodes[k].kernel);
  }
  return ok;
}
Status drop_graph(GraphHandle graph) { return (delete &graph_of(graph), ok); }
Status drop_exec(GraphExec exec) { return (delete &graph_of(exec), ok); }

Status properties_of_fake(GpuProperties* to, int gpu) {
  if (const Status s = enter("cudaGetDeviceProperties")) return s;
  *to = {"fake GPU", fake_setting("SHARDARRAY_FAKE_ARCHITECTURE", 9), 0, std::uint64_t{1} << 40};
  return gpu < gpu_count ? ok : failed(invalid_value);
}
Status set_gpu(int gpu) {
  current_gpu = gpu;
  return enter("cudaSetDevice");
}
const Driver table = {
    .driver_version =
        [](int* version) { return (*version = fake_setting("SHARDARRAY_FAKE_DRIVER", 13000), ok); },
    .runtime_version = [](int* version) { return (*version = 13000, ok); },
    .device_count = [](int* count) { return (*count = gpu_count) > 0 ? ok : failed(no_device); },
    .device_properties = properties_of_fake,
    .set_device = set_gpu,
    .get_device = [](int* gpu) { return (*gpu = current_gpu, ok); },
    .malloc = allocate_on_device,
    .free = free_on_device,
    .host_malloc = allocate_pinned,
    .copy_async = copy_later,
    .fill_async = fill_later,
    .stream_create = make_stream,
    .stream_query = ask_stream,
    .stream_synchronize = wait_for_stream,
    .event_create = make_event,
    .event_record = record_event,
    .event_synchronize = wait_for_event,
    .event_query = ask_event,
    .stream_wait_event = stream_waits,
    .can_access_peer = can_reach,
    .enable_peer_access = reach,
    .load_library = load_code,
    .find_kernel = find_host_kernel,
    .launch = launch_later,
    .begin_capture = begin_fake_capture,
    .last_captured = last_fake_node,
    .end_capture = end_fake_capture,
    .graph_destroy = drop_graph,
    .graph_instantiate = make_exec,
    .graph_set_arguments = set_fake_arguments,
    .graph_update = update_fake_graph,
    .graph_launch = launch_fake_graph,
    .graph_exec_destroy = drop_exec,
    .last_error = [] { return std::exchange(latest, ok); },
    .error_name = name_of,
    .error_text = [](Status) { return "as the test wants it"; },
};

}  // namespace

const Driver& driver() { return table; }
const void* kernel_image() { return ""; }

}  // namespace shardarray::cuda

namespace shardarray::testing {
int fake_enter(const char* call) { return cuda::enter(call); }
FakeBlocks& fake_device_blocks() { return cuda::fake().device; }
int fake_current_gpu() { return cuda::current_gpu; }
}  // namespace shardarray::testing

extern "C" __attribute__((visibility("default")))
const shardarray::testing::FakeCudaControl shardarray_fake_cuda;
const shardarray::testing::FakeCudaControl shardarray_fake_cuda = {
    .fail_call =
        [](int after, int status) {
          auto& f = shardarray::cuda::fake();
          const std::lock_guard lock(f.mutex);
          f.to_failure = after;
          f.failure = status;
        },
    .fail_named =
        [](const char* call, int times, int status) {
          auto& f = shardarray::cuda::fake();
          const std::lock_guard lock(f.mutex);
          f.failing = call;
          f.named_failures = times;
          f.named_failure = status;
        },
    .fail_work =
        [](int after, int status) {
          auto& work = shardarray::cuda::fake().work;
          const std::lock_guard lock(work.mutex);
          work.to_failure = after;
          work.failure = status;
        },
    .set_capacity = [](std::size_t bytes) { shardarray::cuda::fake().device.capacity = bytes; },
    .held = [] { return shardarray::cuda::fake().device.held(); },
    .hold =
        [](bool on) {
          auto& work = shardarray::cuda::fake().work;
          const std::lock_guard lock(work.mutex);
          work.held = on;
          work.changed.notify_all();
        },
    .calls = shardarray::cuda::count_of<&shardarray::cuda::FakeDriver::calls>,
    .done =
        [] {
          auto& work = shardarray::cuda::fake().work;
          const std::lock_guard lock(work.mutex);
          return work.done;
        },
    .last_call =
        [] {
          auto& f = shardarray::cuda::fake();
          const std::lock_guard lock(f.mutex);
          return f.last_failed.c_str();
        },
    .printed_launches = shardarray::cuda::count_of<&shardarray::cuda::FakeDriver::printed_launches>,
    .graph_launches = shardarray::cuda::count_of<&shardarray::cuda::FakeDriver::graph_launches>,
    .products = shardarray::testing::fake_products,
    .algorithm = shardarray::testing::fake_algorithm,
    .nccl_calls = shardarray::testing::fake_nccl_calls,
    .nccl_misuse = shardarray::testing::fake_nccl_misuse,
    .fail_nccl = shardarray::testing::fail_fake_nccl,
    .break_nccl = shardarray::testing::break_fake_nccl,
    .miss_rank = shardarray::testing::miss_fake_rank,
    .launches = shardarray::cuda::count_of<&shardarray::cuda::FakeDriver::launches>,
    .driver = shardarray::cuda::driver,
};
