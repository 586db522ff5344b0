// Runs kernels on the host as the device does: every thread of a block is a fiber, which waits at barriers. So the device's source is
// tested: shuffles, shared memory, the work of each thread. It is printed before a kernel's text and compiled with it.
//
// Blocks, or clusters of them, run one after the other; between two barriers their fibers run in one of several orders, so that a race
// shows as different bits. Each block of a cluster has its own shared memory. A barrier that some threads of a warp or a block do not
// reach is an error, as it is a hang on the device.
#pragma once
#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#define __CUDACC__ 1
#define __device__
#define __global__
#define __shared__ static __attribute__((section("emulated_shared")))
#define alignas(n) __attribute__((aligned(n)))  // which may stand behind `static`
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline
#define __noinline__ [[gnu::noinline]]

// Shared memory, uninitialised.
extern "C" __attribute__((weak, visibility("hidden"))) char __start_emulated_shared[],
    __stop_emulated_shared[];

namespace emulated {

struct Place {
  unsigned x = 0, y = 0, z = 0;
};
/// For all of a cluster, of a block, for the lanes of a warp, or for these in one call.
enum class Waits { no, cluster, block, sync, shuffle, shuffle_down, ballot, done };
/// Where a fiber resumes. ucontext's functions only start fibers, as each of their switches makes two system calls for the signal
/// mask.
using Resume = void* [5];
struct Fiber {
  std::unique_ptr<char[]> stack;  // null: it has not begun
  Resume here{};
  Place thread;
  unsigned block = 0;  // of its cluster
  Waits waits = Waits::no;
  unsigned long long word = 0;  // that it shows the lanes of its warp
};
inline constexpr unsigned lanes = 32;
inline constexpr std::size_t stack_bytes = 64 << 10;

// Of this text alone: others are closed before it, with the code that their fibers are in.
static std::vector<Fiber> fibers;
static Fiber* current = nullptr;
static Resume scheduler;
static Place block_place, grid_size, block_size;  // block_place: of the cluster's first
static unsigned cluster_blocks = 1;               // all of a grid's, or one
static void (*body)();
static bool full_warps = true;  // no call has named only some lanes of its warp

inline Place place_of_block() { return {block_place.x + current->block, block_place.y, 0}; }

/// Shared memory of the blocks whose fibers do not run; that of `here` is where the text looks for it.
static std::vector<std::vector<char>> shared_memory;
static unsigned here = 0;
inline void enter_block(unsigned block) {
  if (block == here) return;
  const auto bytes = static_cast<std::size_t>(__stop_emulated_shared - __start_emulated_shared);
  shared_memory[here].assign(__start_emulated_shared, __stop_emulated_shared);
  if (bytes > 0) std::memcpy(__start_emulated_shared, shared_memory[block].data(), bytes);
  here = block;
}

[[gnu::noinline]] inline void jump(Resume& to) { __builtin_longjmp(to, 1); }
[[gnu::noinline]] inline void wait(Waits how) {
  current->waits = how;
  if (__builtin_setjmp(current->here) == 0) jump(scheduler);
}
inline void enter() {
  for (;;) {  // block after block
    body();
    wait(Waits::done);
  }
}
/// Runs the current fiber until it waits.
[[gnu::noinline]] inline void go_on() {
  Fiber& f = *current;
  if (__builtin_setjmp(scheduler) != 0) return;
  if (f.stack) jump(f.here);
  f.stack.reset(new char[stack_bytes]);
  ucontext_t begin;
  getcontext(&begin);
  begin.uc_stack.ss_sp = f.stack.get();
  begin.uc_stack.ss_size = stack_bytes;
  begin.uc_link = nullptr;
  makecontext(&begin, enter, 0);
  setcontext(&begin);
}
/// A lane of the current fiber's warp.
inline const Fiber& lane_of_warp(unsigned lane) {
  const auto at = static_cast<std::size_t>(current - fibers.data());
  return fibers[at / lanes * lanes + lane];
}
template <class T> T exchanged(unsigned mask, T x, unsigned lane, Waits call) {
  static_assert(sizeof(T) <= 8);
  full_warps &= mask == ~0u;
  std::memcpy(&current->word, &x, sizeof x);
  wait(call);
  std::memcpy(&x, &lane_of_warp(lane).word, sizeof x);
  wait(call);  // all have read
  return x;
}

/// Releases the fibers of every warp, block or cluster that has fully arrived at its barrier. False: there is none.
inline bool release() {
  bool any = false;
  const auto all = [&](std::size_t first, std::size_t count, Waits how) {
    for (std::size_t k = first; k < first + count; k++)
      if (fibers[k].waits != how) return false;
    for (std::size_t k = first; k < first + count; k++) fibers[k].waits = Waits::no;
    return any = true;
  };
  for (std::size_t first = 0; first < fibers.size(); first += lanes)
    for (const Waits call : {Waits::sync, Waits::shuffle, Waits::shuffle_down, Waits::ballot})
      if (fibers[first].waits == call) {
        all(first, lanes, call);
        break;  // who was let go waits for nothing
      }
  for (std::size_t first = 0; first < fibers.size(); first += block_size.x)
    all(first, block_size.x, Waits::block);
  all(0, fibers.size(), Waits::cluster);
  return any;
}

/// Runs the threads of a cluster of blocks; `order`: 0 ascending, 1 descending, otherwise shuffled.
inline const char* run_cluster(unsigned order) {
  const unsigned threads = cluster_blocks * block_size.x;
  fibers.resize(threads);
  for (char* p = __start_emulated_shared; p != __stop_emulated_shared; p++) *p = static_cast<char>(0xaa);
  shared_memory.assign(cluster_blocks, {__start_emulated_shared, __stop_emulated_shared});
  here = 0;
  for (unsigned k = 0; k < threads; k++) {
    fibers[k].thread.x = k % block_size.x;
    fibers[k].block = k / block_size.x;
    fibers[k].waits = Waits::no;
  }
  for (;;) {
    unsigned done = 0;
    for (unsigned k = 0; k < threads; k++) {
      const unsigned at = order == 0 ? k : order == 1 ? threads - 1 - k : (k * 389 + order) % threads;
      current = &fibers[at];
      if (current->waits == Waits::no) {
        enter_block(current->block);
        go_on();
      }
      done += current->waits == Waits::done;
    }
    if (!full_warps) return "a call names some lanes of a warp that all are in";
    if (done == threads) return nullptr;
    if (!release()) return "some threads do not reach a barrier";
  }
}

}  // namespace emulated

#define threadIdx (emulated::current->thread)
#define blockIdx (emulated::place_of_block())
#define gridDim (emulated::grid_size)
#define blockDim (emulated::block_size)

inline void sync_cluster() { emulated::wait(emulated::Waits::cluster); }
inline void __syncthreads() { emulated::wait(emulated::Waits::block); }
inline void __syncwarp() { emulated::wait(emulated::Waits::sync); }
template <class T> T __shfl_sync(unsigned mask, T x, unsigned lane) {
  return emulated::exchanged(mask, x, lane % emulated::lanes, emulated::Waits::shuffle);
}
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by) {
  const unsigned lane = threadIdx.x % emulated::lanes + by;
  return emulated::exchanged(mask, x, lane < emulated::lanes ? lane : threadIdx.x % emulated::lanes,
                             emulated::Waits::shuffle_down);
}
inline unsigned __ballot_sync(unsigned mask, bool x) {
  emulated::full_warps &= mask == ~0u;
  emulated::current->word = x;
  emulated::wait(emulated::Waits::ballot);
  unsigned all = 0;
  for (unsigned lane = 0; lane < emulated::lanes; lane++) {
    all |= static_cast<unsigned>(emulated::lane_of_warp(lane).word) << lane;
  }
  emulated::wait(emulated::Waits::ballot);  // all have read
  return all;
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline unsigned atomicAdd(unsigned* p, unsigned x) {
  *p += x;
  return *p - x;
}
inline void* __cvta_global_to_generic(std::size_t p) { return reinterpret_cast<void*>(p); }

/// Runs a launch; null, or what is wrong. `bases`: what the kernel's last parameter is made of. `clustered`: its blocks are a cluster.
template <class Bases>
const char* emulate(void (*kernel)(const std::byte*, std::byte*, Bases), unsigned blocks, unsigned items,
                    unsigned threads, unsigned order, const void* table, void* memory, const void* bases,
                    bool clustered = false) {
  static void (*run)(const std::byte*, std::byte*, Bases);
  static const void *given_table, *given_bases;
  static void* given_memory;
  run = kernel;
  given_table = table;
  given_memory = memory;
  given_bases = bases;
  emulated::body = [] {
    run(static_cast<const std::byte*>(given_table), static_cast<std::byte*>(given_memory),
        *static_cast<const Bases*>(given_bases));
  };
  emulated::grid_size = {blocks, items, 1};
  emulated::block_size = {threads, 1, 1};
  emulated::cluster_blocks = clustered ? blocks : 1;
  const unsigned clusters = blocks / emulated::cluster_blocks;
  for (unsigned k = 0; k < clusters * items; k++) {
    const unsigned at = order == 1 ? clusters * items - 1 - k : k;
    emulated::block_place = {at % clusters, at / clusters, 0};
    if (const char* const wrong = emulated::run_cluster(order)) return wrong;
  }
  return nullptr;
}
