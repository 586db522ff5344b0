// The support code of a whole program's kernel (src/cuda/program_text.h): one block or cluster runs all launches of the program, step by
// step.
//
// A step does what its own kernel would do: the same text with another grid, of one block with all threads. After each step all threads
// synchronize, and all writes are visible.
// threads wait for each other, and see what any of them wrote.
#pragma once
#include "kernels/conv.cuh"
#include "kernels/exchange.cuh"
#include "kernels/gemm.cuh"
#include "kernels/known_items.cuh"
#include "kernels/printed.cuh"
#include "kernels/program_table.cuh"
#include "kernels/scan.cuh"
#include "kernels/scatter.cuh"
#include "kernels/sort.cuh"
#include "kernels/update.cuh"

#ifndef __CUDACC__
#include <cstring>
#endif

namespace shardarray::device {

#ifdef __CUDACC__
#define SHARDARRAY_BLOCK_SHARED __shared__
#define SHARDARRAY_FORGET(arenas) static_cast<void>(0)
#define SHARDARRAY_ARENAS(bytes, alignment) __shared__ alignas(alignment) std::byte arenas[bytes];
#define SHARDARRAY_SYNC_BLOCK() __syncthreads()
/// Synchronizes all threads of all blocks. (The tests' emulator defines sync_cluster.)
#ifdef __CUDA_ARCH__
__device__ inline void sync_cluster() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
#endif
#if SHARDARRAY_PROGRAM_BLOCKS > 1
#define SHARDARRAY_SYNC_PROGRAM() sync_cluster()
#define SHARDARRAY_CLUSTER __cluster_dims__(SHARDARRAY_PROGRAM_BLOCKS, 1, 1)
#else
#define SHARDARRAY_SYNC_PROGRAM() __syncthreads()
#define SHARDARRAY_CLUSTER
#endif
/// Runs the following statement for numbers below `count`, spread over the threads of a block.
#define SHARDARRAY_EACH(k, count) for (std::uint32_t k = threadIdx.x; k < (count); k += program_threads)
#else
#define SHARDARRAY_BLOCK_SHARED
/// Makes reads before the first write show up.
#define SHARDARRAY_FORGET(arenas) std::memset(arenas, 0xff, sizeof arenas)
#define SHARDARRAY_ARENAS(bytes, alignment) alignas(alignment) static thread_local std::byte arenas[bytes];
#define SHARDARRAY_SYNC_BLOCK() static_cast<void>(0)
#define SHARDARRAY_SYNC_PROGRAM() static_cast<void>(0)
#define SHARDARRAY_EACH(k, count) for (std::uint32_t k = 0; k < (count); k++)
#endif

inline constexpr std::uint32_t all_threads = SHARDARRAY_PROGRAM_BLOCKS * program_threads;
#ifdef __CUDACC__
/// The thread's number across all blocks. Warps are dealt out block by block, so that a few warps of work spread over the multiprocessors.
SHARDARRAY_DEVICE inline std::uint32_t program_thread() {
  if constexpr (SHARDARRAY_PROGRAM_BLOCKS == 1) return threadIdx.x;
  const std::uint32_t warp = threadIdx.x / warp_lanes * SHARDARRAY_PROGRAM_BLOCKS + blockIdx.x;
  return warp * warp_lanes + threadIdx.x % warp_lanes;
}
#endif

/// What all steps of a program get: its tables, and the addresses of this run.
struct ProgramPlace {
  const std::byte* tables;
  std::byte* scratch;
  const Bases& bases;
};

/// A text as a step; one host call runs `threads_together` threads.
template <auto text, std::uint32_t threads_together> struct ProgramStep {
  SHARDARRAY_DEVICE static void run(const Grid& g, const std::byte* table, const ProgramPlace& p) {
    if constexpr (requires { text(g, table, p.bases); }) text(g, table, p.bases);
    else text(g, table, p.scratch, p.bases);
  }
  static constexpr std::uint32_t together = threads_together;
};
#define SHARDARRAY_PRINTED(name, text, most, blocks, together) \
  template <class Item> using name = ProgramStep<text<Item>, together>;

/// Runs a step for all items, the largest of which has `points`. The threads form `groups` groups of whole warps; each acts as the block of
/// one item after another. Idle warps skip the step's prologue, which dominates short steps. The host runs threads in another order than
/// the kernels, so that a dependence on it would show in the results.
template <class Step>
SHARDARRAY_DEVICE inline void run_step(const ProgramPlace& p, std::uint32_t table, std::uint32_t items,
                                       std::uint32_t groups, [[maybe_unused]] std::uint32_t points) {
  const std::uint32_t threads = all_threads / groups;
#ifdef __CUDACC__
  const std::uint32_t number = program_thread(), thread = number % threads;
  if (thread / warp_lanes * warp_lanes < points) {
    SHARDARRAY_POINTS
    for (std::uint32_t item = number / threads; item < items; item += groups)
      Step::run({0, 1, item, thread, threads}, p.tables + table, p);
  }
#else
  for (std::uint32_t item = items; item-- > 0;)
    for (std::uint32_t end = threads; end > 0; end -= Step::together)
      Step::run({0, 1, item, end - Step::together, threads}, p.tables + table, p);
#endif
  SHARDARRAY_SYNC_PROGRAM();
}

/// A step whose items have a text each, with `groups` >= the number of items.
template <class... Items>
SHARDARRAY_DEVICE inline void run_items(const ProgramPlace& p, std::uint32_t groups) {
  const std::uint32_t threads = all_threads / groups;
#ifdef __CUDACC__
  const std::uint32_t number = program_thread();
  std::uint32_t group = number / threads;
  const auto run = [&]<class Item>(Item*) {
    if (group-- == 0) Item::run({0, 1, 0, number % threads, threads}, p.tables, p);
  };
#else
  const auto run = [&]<class Item>(Item*) {
    for (std::uint32_t end = threads; end > 0; end -= Item::together)
      Item::run({0, 1, 0, end - Item::together, threads}, p.tables, p);
  };
#endif
  (run(static_cast<Items*>(nullptr)), ...);
  SHARDARRAY_SYNC_PROGRAM();
}

/// run_step as a separate function, for texts that several steps share: they are compiled once.
template <class Step>
SHARDARRAY_DEVICE SHARDARRAY_NOT_INLINE void call_step(const ProgramPlace& p, std::uint32_t table,
                                                       std::uint32_t items, std::uint32_t groups,
                                                       std::uint32_t points) {
  run_step<Step>(p, table, items, groups, points);
}

/// The addresses of one run of a called program.
SHARDARRAY_DEVICE inline void bind_called(const ProgramPlace& caller, std::uint32_t table, std::int64_t run,
                                          Bases& to) {
  const CalledTable& t = *reinterpret_cast<const CalledTable*>(caller.tables + table);
  const CalledBase* const bases = entries(caller.tables + table, t.bases);
  to.many = nullptr;
  SHARDARRAY_EACH(k, t.bases.count) {
    const CalledBase& b = bases[k];
    std::byte* const first = address_of(caller.bases, run == 0 ? b.first : run % 2 == 0 ? b.even : b.odd);
    to.few[k] = reinterpret_cast<std::uint64_t>(first + run * b.stride);
  }
  SHARDARRAY_SYNC_BLOCK();
}

/// Copies tables to where reading them is cheapest.
SHARDARRAY_DEVICE inline void copy_tables(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  SHARDARRAY_EACH(k, bytes / sizeof(Bytes16))
  reinterpret_cast<Bytes16*>(to)[k] = reinterpret_cast<const Bytes16*>(from)[k];
  SHARDARRAY_SYNC_BLOCK();
}

/// The addresses of a run, with those of the arenas, which come first, replaced; arenas are `bytes` apart.
SHARDARRAY_DEVICE inline void put_arenas(Bases& to, const Bases& from, std::byte* first, std::uint32_t arenas,
                                         std::uint32_t bytes) {
  to.many = nullptr;
  SHARDARRAY_EACH(k, few_bases)
  to.few[k] = k < arenas ? reinterpret_cast<std::uint64_t>(first + k * bytes) : from.few[k];
  SHARDARRAY_SYNC_BLOCK();
}

// The kernel's signature.
#ifdef __CUDACC__
#define SHARDARRAY_PROGRAM(name)                                                                             \
  extern "C" __global__ void __launch_bounds__(shardarray::device::program_threads) SHARDARRAY_CLUSTER name( \
      const std::byte* tables, std::byte* scratch, const __grid_constant__ shardarray::device::Bases bases)
#else
/// `name`_bases: the number of addresses that a launch passes.
#define SHARDARRAY_PROGRAM(name)                                                                     \
  extern "C" {                                                                                       \
  std::uint32_t name##_bases = shardarray::device::few_bases;                                        \
  }                                                                                                  \
  extern "C" void name(const shardarray::device::Grid&, const std::byte* tables, std::byte* scratch, \
                       const shardarray::device::Bases& bases)
#endif

}  // namespace shardarray::device
