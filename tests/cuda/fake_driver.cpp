// The function table of a driver whose GPUs are made of host memory. It refuses what CUDA refuses.
#include "fake_driver.h"

#include "cuda/host_kernels.h"
#include "fake_code.h"

namespace shardarray::testing {

using namespace cuda;

namespace {

int fake_setting(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}
const int gpu_count = fake_setting("SHARDARRAY_FAKE_GPUS", 1);

thread_local int current_gpu = 0;
thread_local Status latest = ok;

}  // namespace

FakeDriver& fake_driver() {
  static FakeDriver& f = *new FakeDriver;
  return f;
}
FakeBlocks& fake_device_blocks() { return fake_driver().device; }
int fake_current_gpu() { return current_gpu; }

Status failed(Status status) { return latest = status; }
Status enter(const char* call) {
  FakeDriver& f = fake_driver();
  std::vector<FakeStream*> streams;
  {
    const std::lock_guard lock(f.mutex);
    f.calls++;
    f.calls_by_name[call]++;
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
int fake_enter(const char* call) { return enter(call); }

void capture_stream(FakeStream& stream, std::shared_ptr<FakeCapture> capture) {
  capture->streams.push_back(&stream);
  stream.capture = std::move(capture);
  stream.last.clear();
}

void count_launch(const void* kernel) {
  const std::lock_guard lock(fake_driver().mutex);
  fake_driver().launches++;
  fake_driver().printed_launches +=
      fake_driver().printed.count(static_cast<KernelHandle>(const_cast<void*>(kernel)));
}
bool is_grid(const Grid& grid) {
  const auto whole = [](std::uint32_t n, std::uint32_t most) { return n >= 1 && n <= most; };
  return whole(grid.blocks, 0x7fffffff) && whole(grid.items, 65535) && whole(grid.threads, 1024);
}
FakeLaunch launch_of(KernelHandle kernel, const Grid& grid, void** arguments) {
  FakeLaunch l = {
      reinterpret_cast<HostKernel>(kernel),    grid, *static_cast<const std::byte**>(arguments[0]),
      *static_cast<std::byte**>(arguments[1]), {},   {}};
  const std::lock_guard lock(fake_driver().mutex);
  const auto* const addresses = static_cast<const std::uint64_t*>(arguments[2]);
  if (const auto program = fake_driver().bases.find(kernel); program != fake_driver().bases.end())
    l.program_bases.assign(addresses, addresses + 1 + program->second);
  else l.bases = *static_cast<const device::Bases*>(arguments[2]);
  return l;
}

namespace {

Status failed_if(Status status) { return status == ok ? ok : failed(status); }

/// Waiting for a captured stream, or querying it, invalidates the capture.
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
bool fits(const void* p, std::size_t bytes) {
  return !FakeBlocks::on_device(p) || fake_driver().device.rest(p) >= bytes;
}

Status allocate_on_device(void** to, std::size_t bytes) {
  if (const Status s = enter("cudaMalloc")) return s;
  *to = fake_driver().device.add(bytes, FakeBlocks::tag);
  return *to != nullptr ? ok : failed(out_of_memory);
}
// Does not wait: work that still uses the block reads garbage.
Status free_on_device(void* p) {
  if (const Status s = enter("cudaFree")) return s;
  return fake_driver().device.remove(p) ? ok : failed(invalid_value);
}
Status allocate_pinned(void** to, std::size_t bytes) {
  if (const Status s = enter("cudaMallocHost")) return s;
  *to = fake_driver().pinned.add(bytes, 0);
  return *to != nullptr ? ok : failed(out_of_memory);
}

// Pinned memory is read and written when the copy runs, pageable memory before the call returns.
Status copy_later(void* to, const void* from, std::size_t bytes, Stream s) {
  if (const Status status = enter("cudaMemcpyAsync")) return status;
  FakeStream& stream = stream_of(s);
  if (stream.gpu != current_gpu) return failed(invalid_handle);
  if (spoils(stream))
    return failed(not_while_capturing);  // a copy from the host would be made again with what is there then
  if (!fits(to, bytes) || !fits(from, bytes)) return failed(invalid_value);
  const bool paged_from = !FakeBlocks::on_device(from) && fake_driver().pinned.rest(from) < bytes,
             paged_to = !FakeBlocks::on_device(to) && fake_driver().pinned.rest(to) < bytes;
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
  auto* const fresh = new FakeStream(fake_driver().work, current_gpu);
  const std::lock_guard lock(fake_driver().mutex);
  fake_driver().streams.push_back(fresh);
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
  const bool behind_kernel = stream.behind_kernel;
  if (stream.capture != nullptr) event_of(e) = {stream.gpu, nullptr, 0, stream.capture, stream.last};
  else event_of(e) = {stream.gpu, &stream, stream.ask([] {}), nullptr, {}};
  stream.behind_kernel = behind_kernel;
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

/// The stream is captured from now on where the event was, if it is not yet.
Status joins(FakeStream& stream, const FakeEvent& event) {
  if (event.capture->ended) return failed(captured_event);
  if (stream.capture != nullptr && stream.capture != event.capture) {
    stream.capture->spoiled = event.capture->spoiled = true;
    return failed(captures_merged);
  }
  if (stream.capture == nullptr) capture_stream(stream, event.capture);
  for (const std::size_t k : event.last)
    if (std::find(stream.last.begin(), stream.last.end(), k) == stream.last.end()) stream.last.push_back(k);
  stream.capture->add(nullptr, nullptr, stream.gpu, stream.last);  // so that it must be followed itself
  stream.behind_kernel = false;
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
    const std::lock_guard lock(fake_driver().mutex);
    fake_driver().printed.insert(*to);
    const void* const bases = dlsym(library, (name + std::string("_bases")).c_str());
    if (bases != nullptr) fake_driver().bases[*to] = *static_cast<const std::uint32_t*>(bases);
  }
  return *to != nullptr ? ok : failed(no_symbol);
}

Status launch_later(KernelHandle kernel, const Grid& grid, void** arguments, Stream s, bool early) {
  if (const Status status = enter("cudaLaunchKernel")) return status;
  FakeStream& stream = stream_of(s);
  if (stream.gpu != current_gpu) return failed(invalid_handle);
  if (!is_grid(grid)) return failed(invalid_grid);
  if (early && !stream.behind_kernel) return failed(invalid_value);  // it would wait for kernels alone
  if (stream.capture == nullptr) count_launch(kernel);
  if (early) {
    const std::lock_guard lock(fake_driver().mutex);
    fake_driver().early_launches++;
  }
  stream.ask([launch = launch_of(kernel, grid, arguments)] { launch.run(); }, kernel);
  return ok;
}

// As CUB: its own memory says nothing of what is asked, and all of it may be written.
Status sort_pairs_later(void* own, std::size_t* own_bytes, const PairSort& sort, void* memory, Stream s) {
  constexpr std::size_t alignment = 256;
  if (const Status status = enter("cub::DeviceRadixSort")) return status;
  FakeStream& stream = stream_of(s);
  if (stream.gpu != current_gpu) return failed(invalid_handle);
  const std::size_t needed = static_cast<std::size_t>(sort.count) + alignment;
  if (own == nullptr) return (*own_bytes = needed, ok);
  if (sort.count < 1 || sort.bits < 1 || sort.bits > 8 * sort.key_bytes || *own_bytes < needed ||
      !fits(own, *own_bytes) || reinterpret_cast<std::uintptr_t>(own) % alignment != 0)
    return failed(invalid_value);
  const auto pairs = static_cast<std::size_t>(sort.count);
  for (const std::uint64_t keys : {sort.keys, sort.sorted_keys})
    if (keys % sort.key_bytes != 0 || !fits(static_cast<std::byte*>(memory) + keys, pairs * sort.key_bytes))
      return failed(invalid_value);
  for (const std::uint64_t values : {sort.values, sort.sorted_values})
    if (values % 4 != 0 || !fits(static_cast<std::byte*>(memory) + values, pairs * 4))
      return failed(invalid_value);
  stream.ask([=, own = FakeBlocks::host(own), memory = FakeBlocks::host(static_cast<std::byte*>(memory))] {
    std::memset(own, 0xff, needed);
    sort_pairs_on_host(sort, memory);
  });
  return ok;
}

Status count_gpus(int* count) {
  *count = 0;
  if (const Status s = fake_setting("SHARDARRAY_FAKE_COUNT_STATUS", ok)) return failed(s);
  return (*count = gpu_count) > 0 ? ok : failed(no_device);
}
Status properties_of_fake(GpuProperties* to, int gpu) {
  if (const Status s = enter("cudaGetDeviceProperties")) return s;
  const int host = fake_setting("SHARDARRAY_FAKE_HOST", 0);  // of other machines other GPUs
  *to = {"fake GPU", fake_setting("SHARDARRAY_FAKE_ARCHITECTURE", 9),
         0,          std::uint64_t{1} << 40,
         132,        std::to_string(1000 * host + gpu)};
  return gpu < gpu_count ? ok : failed(invalid_value);
}
/// SHARDARRAY_FAKE_CLUSTERS: of 8 blocks.
Status count_clusters(int* count, KernelHandle, std::uint32_t, std::uint32_t) {
  if (const Status s = enter("cudaOccupancyMaxActiveClusters")) return s;
  return (*count = fake_setting("SHARDARRAY_FAKE_CLUSTERS", 16), ok);
}
Status set_gpu(int gpu) {
  current_gpu = gpu;
  return enter("cudaSetDevice");
}
const Driver table = {
    .driver_version =
        [](int* version) { return (*version = fake_setting("SHARDARRAY_FAKE_DRIVER", 13000), ok); },
    .runtime_version = [](int* version) { return (*version = 13000, ok); },
    .device_count = count_gpus,
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
    .max_active_clusters = count_clusters,
    .launch = launch_later,
    .sort_pairs = sort_pairs_later,
    .begin_capture = begin_fake_capture,
    .last_captured = last_fake_node,
    .end_capture = end_fake_capture,
    .graph_destroy = drop_fake_graph,
    .graph_instantiate = make_fake_exec,
    .graph_set_arguments = set_fake_arguments,
    .graph_update = update_fake_exec,
    .graph_launch = launch_fake_exec,
    .graph_exec_destroy = drop_fake_exec,
    .last_error = [] { return std::exchange(latest, ok); },
    .error_name = name_of,
    .error_text = [](Status) { return "as the test wants it"; },
};

}  // namespace

}  // namespace shardarray::testing

namespace shardarray::cuda {
const Driver& driver() { return testing::table; }
const void* kernel_image() { return ""; }
}  // namespace shardarray::cuda
