// The fakes of CUDA themselves (tests/cuda/), each in its own process: they refuse what the real ones refuse, and expose misuse of
// their memory.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cuda/host_kernels.h"
#include "cuda_stand_ins.h"
#include "scale.h"

namespace cuda_fakes_test {

using namespace shardarray;
using namespace shardarray::stand_ins_test;
using namespace shardarray::testing;
using cuda::Driver;
using cuda::GraphExec;
using cuda::GraphHandle;
using cuda::GraphNode;
using cuda::Grid;
using cuda::KernelHandle;
using cuda::Stream;

namespace {

constexpr int invalid_value = 1, invalid_grid = 9, invalid_handle = 400, other_nodes = 910;

/// What a launch gets: the kernels below write to `memory`.
struct LaunchArguments {
  const std::byte* table = nullptr;
  void* memory = nullptr;
  device::Bases bases{};
  void* all[3] = {&table, &memory, &bases};
  LaunchArguments(void* to, std::uint64_t number) : memory(to) { bases.few[0] = number; }
};
void put_number(const device::Grid&, const std::byte*, std::byte* to, const device::Bases& bases) {
  *to = static_cast<std::byte>(bases.few[0]);
}
void put_hundred_more(const device::Grid&, const std::byte*, std::byte* to, const device::Bases& bases) {
  *to = static_cast<std::byte>(bases.few[0] + 100);
}
KernelHandle handle_of(cuda::HostKernel kernel) { return reinterpret_cast<KernelHandle>(kernel); }

}  // namespace

// ---------------------------------------------------------------- memory
namespace {

/// What ends a child of this process that calls f; 0: it comes to its end.
template <class F> int signal_of(const F& f) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    std::signal(SIGSEGV, SIG_DFL);
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("cuda process: memory that the host touches" * doctest::skip()) {
  auto* const there = static_cast<volatile char*>(memory(64));
  auto* const here = static_cast<volatile char*>(pinned_memory(64));
  for (const int k : {0, 63}) {
    CHECK(signal_of([&] { static_cast<void>(there[k]); }) == SIGSEGV);
    CHECK(signal_of([&] { there[k] = 1; }) == SIGSEGV);
    CHECK(signal_of([&] { here[k] = there[k]; }) == SIGSEGV);
    CHECK(signal_of([&] { here[k] = 1; }) == 0);
  }
}

TEST_CASE("cuda process: memory from its first to its last byte" * doctest::skip()) {
  constexpr std::size_t bytes = 1024;
  const Driver& d = driver();
  const Stream s = stream_on(0);
  void* const p = memory(bytes);
  void* const pinned = pinned_memory(bytes);
  using Bytes = std::vector<unsigned char>;
  CHECK(content<unsigned char>(p, bytes, s) == Bytes(bytes, 0xff));
  REQUIRE(d.fill_async(p, 7, bytes, s) == 0);
  CHECK(content<unsigned char>(p, bytes, s) == Bytes(bytes, 7));

  CHECK(d.copy_async(pinned, p, bytes + 1, s) == invalid_value);
  CHECK(d.last_error() == invalid_value);
  CHECK(d.last_error() == 0);
  CHECK(d.copy_async(p, pinned, bytes + 1, s) == invalid_value);
  CHECK(d.copy_async(behind(p, 1), pinned, bytes, s) == invalid_value);
  CHECK(d.fill_async(behind(p, bytes - 1), 0, 2, s) == invalid_value);
  CHECK(d.free(behind(p, 1)) == invalid_value);
  CHECK(d.free(pinned) == invalid_value);
  CHECK(content<unsigned char>(p, bytes, s) == Bytes(bytes, 7));

  // What was asked for before and is done after it reads rubbish. A sanitizer ends the process there.
  fake_control().hold(true);
  if (!is_sanitized()) REQUIRE(d.copy_async(pinned, p, bytes, s) == 0);
  CHECK(d.free(p) == 0);
  fake_control().hold(false);
  REQUIRE(d.stream_synchronize(s) == 0);
  const auto* const read = static_cast<const unsigned char*>(pinned);
  constexpr std::ptrdiff_t few = bytes / 8;  // of somebody else's, who got the memory since
  if (!is_sanitized()) CHECK(std::count(read, read + bytes, 7) < few);
  CHECK(d.free(p) == invalid_value);
  CHECK(d.copy_async(pinned, p, 1, s) == invalid_value);
}

TEST_CASE("cuda process: streams and grids that are refused" * doctest::skip()) {
  const Driver& d = driver();
  const Stream first = stream_on(0), second = stream_on(1);
  void* const p = memory(64);
  LaunchArguments a(p, 3);
  const auto launch = [&](const Grid& grid, Stream s) {
    return d.launch(handle_of(put_number), grid, a.all, s, false);
  };
  CHECK(launch({}, second) == 0);
  CHECK(content<unsigned char>(p, 1, second)[0] == 3);
  for (const Grid& grid : {Grid{0, 1, 1}, Grid{1, 0, 1}, Grid{1, 65536, 1}, Grid{1, 1, 0}, Grid{1, 1, 1025}})
    CHECK(launch(grid, second) == invalid_grid);
  CHECK(launch({}, first) == invalid_handle);  // the thread has set the other GPU
  static cuda::Event e = nullptr;              // which lives as long as the process, as the library's do
  REQUIRE(d.event_create(&e) == 0);
  CHECK(d.event_record(e, first) == invalid_handle);
  CHECK(d.event_record(e, second) == 0);
  const auto launch_early = [&] { return d.launch(handle_of(put_number), {}, a.all, second, true); };
  CHECK(launch_early() == invalid_value);  // content() copied: a kernel waits for kernels alone
  CHECK(launch({}, second) == 0);
  CHECK(d.event_record(e, second) == 0);
  CHECK(launch_early() == 0);
  CHECK(d.enable_peer_access(1) == invalid_value);
  CHECK(d.enable_peer_access(2) == invalid_value);
}

TEST_CASE(
    "cuda stand-ins: memory that the host touches ends it, freed memory is rubbish, misuse is refused") {
  on_fake("cuda process: memory that the host touches");
  on_fake("cuda process: memory from its first to its last byte");
  on_fake("cuda process: streams and grids that are refused", two_gpus);
}

// ---------------------------------------------------------------- graphs
namespace {

struct DropGraph {
  void operator()(GraphHandle g) const { CHECK(driver().graph_destroy(g) == 0); }
  void operator()(GraphExec e) const { CHECK(driver().graph_exec_destroy(e) == 0); }
};
using OwnGraph = std::unique_ptr<cuda::GraphObject, DropGraph>;
using OwnExec = std::unique_ptr<cuda::GraphExecObject, DropGraph>;

/// What `ask` asks the stream for.
OwnGraph captured(Stream s, const std::function<void()>& ask) {
  GraphHandle graph = nullptr;
  REQUIRE(driver().begin_capture(s) == 0);
  ask();
  REQUIRE(driver().end_capture(&graph, s) == 0);
  return OwnGraph(graph);
}
OwnExec instantiated(const OwnGraph& graph) {
  GraphExec exec = nullptr;
  REQUIRE(driver().graph_instantiate(&exec, graph.get()) == 0);
  return OwnExec(exec);
}
/// A launch of the kernel and a fill of the byte behind it; the nodes are put into `nodes`.
OwnGraph captured_pair(Stream s, void* p, cuda::HostKernel kernel, std::uint64_t number, GraphNode nodes[2]) {
  return captured(s, [&] {
    LaunchArguments a(p, number);
    REQUIRE(driver().launch(handle_of(kernel), {}, a.all, s, false) == 0);
    REQUIRE(driver().last_captured(&nodes[0], s) == 0);
    REQUIRE(driver().fill_async(behind(p, 1), static_cast<int>(number), 1, s) == 0);
    REQUIRE(driver().last_captured(&nodes[1], s) == 0);
  });
}

}  // namespace

TEST_CASE("cuda process: graphs that are changed" * doctest::skip()) {
  const Driver& d = driver();
  const Stream other_gpu = stream_on(1), s = stream_on(0);
  void* const p = memory(2);
  using Bytes = std::vector<unsigned char>;
  GraphNode nodes[2], others[2], unused[2];
  OwnGraph graph = captured_pair(s, p, put_number, 1, nodes);
  const OwnGraph other = captured_pair(s, p, put_hundred_more, 2, others);
  const OwnExec exec = instantiated(graph);
  const auto launched = [&] {
    CHECK(d.graph_launch(exec.get(), s) == 0);
    return content<unsigned char>(p, 2, s);
  };
  const auto set = [&](GraphNode node, cuda::HostKernel kernel, std::uint64_t number, const Grid& grid = {}) {
    LaunchArguments a(p, number);
    return d.graph_set_arguments(exec.get(), node, handle_of(kernel), grid, a.all);
  };
  CHECK(launched() == Bytes{1, 1});
  CHECK(set(nodes[0], put_number, 5) == 0);
  CHECK(launched() == Bytes{5, 1});
  CHECK(set(nodes[0], put_hundred_more, 6) == 0);  // another kernel, as since CUDA 11
  CHECK(launched() == Bytes{106, 1});

  CHECK(set(nodes[1], put_number, 7) == invalid_value);   // no kernel's,
  CHECK(set(others[0], put_number, 7) == invalid_value);  // of another graph
  CHECK(set(nodes[0], put_number, 7, {0, 1, 1}) == invalid_value);
  CHECK(set(nodes[0], nullptr, 7) == invalid_value);
  REQUIRE(d.set_device(1) == 0);
  CHECK(set(nodes[0], put_number, 7) == invalid_value);
  REQUIRE(d.set_device(0) == 0);
  CHECK(launched() == Bytes{106, 1});

  CHECK(d.graph_update(exec.get(), other.get()) == 0);
  CHECK(launched() == Bytes{102, 2});
  CHECK(set(others[0], put_number, 7) ==
        invalid_value);  // its nodes are those of the graph that it was made of
  CHECK(set(nodes[0], put_number, 8) == 0);
  CHECK(launched() == Bytes{8, 2});
  const auto refused = [&](const OwnGraph& changed) {
    CHECK(d.graph_update(exec.get(), changed.get()) == other_nodes);
    CHECK(launched() == Bytes{8, 2});
  };
  refused(captured(s, [&] {
    LaunchArguments a(p, 9);
    REQUIRE(d.launch(handle_of(put_number), {}, a.all, s, false) == 0);
  }));
  refused(captured(s, [&] {
    LaunchArguments a(p, 9);
    for (int k = 0; k < 2; k++) REQUIRE(d.launch(handle_of(put_number), {}, a.all, s, false) == 0);
  }));
  refused(captured(s, [&] {
    LaunchArguments a(p, 9);
    REQUIRE(d.launch(handle_of(put_number), {}, a.all, s, false) == 0);
    for (int k = 0; k < 2; k++) REQUIRE(d.fill_async(behind(p, 1), 9, 1, s) == 0);
  }));
  REQUIRE(d.set_device(1) == 0);
  const OwnGraph elsewhere = captured_pair(other_gpu, p, put_number, 9, unused);
  REQUIRE(d.set_device(0) == 0);
  refused(elsewhere);

  graph.reset();
  CHECK(set(nodes[0], put_number, 7) == invalid_value);  // the node went with its graph
  CHECK(launched() == Bytes{8, 2});
}

TEST_CASE("cuda process: the order of a seed" * doctest::skip()) {
  const Driver& d = driver();
  const Stream second = stream_on(1), first = stream_on(0);
  void* const p = memory(1);
  static cuda::Event fork = nullptr, join = nullptr;
  REQUIRE(d.event_create(&fork) == 0);
  REQUIRE((d.set_device(1) == 0 && d.event_create(&join) == 0 && d.set_device(0) == 0));
  const OwnGraph graph = captured(first, [&] {
    REQUIRE(d.event_record(fork, first) == 0);
    REQUIRE(d.fill_async(p, 'a', 1, first) == 0);
    REQUIRE(d.set_device(1) == 0);
    REQUIRE(d.stream_wait_event(second, fork) == 0);
    REQUIRE(d.fill_async(p, 'b', 1, second) == 0);
    REQUIRE((d.event_record(join, second) == 0 && d.set_device(0) == 0));
    REQUIRE(d.stream_wait_event(first, join) == 0);
  });
  const OwnExec exec = instantiated(graph);
  std::string last;
  for (int k = 0; k < 32; k++) {
    REQUIRE(d.graph_launch(exec.get(), first) == 0);
    last += content<char>(p, 1, first)[0];
  }
  std::printf("order: %s\n", last.c_str());
}

TEST_CASE("cuda stand-ins: graphs are changed as CUDA changes them, and run in any order that they allow") {
  on_fake("cuda process: graphs that are changed", two_gpus);
  const auto order = [](const std::string& seed) {
    const std::string text =
        text_on_fake("cuda process: the order of a seed", two_gpus + " SHARDARRAY_FAKE_SEED=" + seed);
    const std::size_t at = text.find("order: ");
    REQUIRE(at != text.npos);
    return text.substr(at + 7, 32);
  };
  std::set<std::string> orders;
  for (const char* const seed : {"1", "2", "3"}) {
    const std::string o = order(seed);
    CHECK((o.find('a') != o.npos && o.find('b') != o.npos));
    orders.insert(o);
  }
  CHECK(orders.size() == 3);
  CHECK(orders.contains(order("2")));
}

}  // namespace cuda_fakes_test
