// What host and device agree on: plain structs, and how the text of kernels runs on either.
//
// A kernel is one text for both. On the device every thread runs it; on the host (tests, the fake device) a loop over the threads
// of a block does. All that is known when a program is loaded stands in the launch's table, with offsets inside the table for
// lists, never pointers; the bases of a run come as an argument.
#pragma once
#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#define SHARDARRAY_DEVICE __device__
#define SHARDARRAY_NOT_INLINE __noinline__
#define SHARDARRAY_SCALAR __device__ __forceinline__
#else
#define SHARDARRAY_DEVICE
#define SHARDARRAY_NOT_INLINE
#endif

// Before a loop over points: threads fetch the instructions of a program's kernel for a few points each, so that a short text is
// done sooner there.
#if defined(__CUDACC__) && defined(SHARDARRAY_PROGRAM_BASES)
#define SHARDARRAY_POINTS _Pragma("unroll 1")
#else
#define SHARDARRAY_POINTS
#endif

namespace shardarray::device {

/// The base pointers of a run (Ref::base). Up to `few_bases` come with the launch, more stand in device memory.
#ifdef SHARDARRAY_PROGRAM_BASES  // the text of a small program's kernel: all of its addresses come with the launch
inline constexpr std::uint32_t few_bases = SHARDARRAY_PROGRAM_BASES;
using PointNumber = std::uint32_t;
#else
inline constexpr std::uint32_t few_bases = 60;
using PointNumber = std::uint64_t;  ///< holds the number of a point of a launch
#endif
struct Bases {
  const std::uint64_t* many;  ///< null: they are in `few`
  std::uint64_t few[few_bases];
};
struct Address {
  std::uint32_t base;
  std::uint64_t offset;  ///< bytes
};

SHARDARRAY_DEVICE inline std::byte* address_of(const Bases& bases, const Address& a) {
#ifdef SHARDARRAY_PROGRAM_BASES
  // Its arenas may be shared memory. (NVRTC 13.0 never ends on some texts that mix those with pointers of global memory.)
  return reinterpret_cast<std::byte*>(bases.few[a.base] + a.offset);
#else
  const std::uint64_t base = bases.many ? bases.many[a.base] : bases.few[a.base];
#ifdef __CUDACC__
  // What is known to be no shared and no local memory is read by instructions that need not find that out.
  return static_cast<std::byte*>(__cvta_global_to_generic(base + a.offset));
#else
  return reinterpret_cast<std::byte*>(base + a.offset);
#endif
#endif
}

/// A list in a table.
template <class T> struct List { std::uint32_t offset, count; };
template <class T> SHARDARRAY_DEVICE inline const T* entries(const std::byte* table, const List<T>& list) {
  return reinterpret_cast<const T*>(table + list.offset);
}

/// Bytes behind the tables of launches that kernels may read.
inline constexpr std::uint32_t table_margin = 2048;

/// At the head of each kernel, which may have been launched while the one before it still runs (Driver::launch): the one behind it may
/// come too. Tables, which no kernel writes, are fetched meanwhile; nothing else is read or written before the one before it is done.
SHARDARRAY_DEVICE inline void wait_for_kernel_before([[maybe_unused]] const std::byte* table) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  constexpr std::uint32_t line = 128;
  if (threadIdx.x < table_margin / line)
    asm volatile("prefetch.global.L1 [%0];" ::"l"(table + threadIdx.x * line));
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Where a thread stands: items are the grid's second dimension.
struct Grid {
  std::uint32_t block, blocks, item, thread, threads;
};
/// The thread's first of many points, and the distance to its next.
SHARDARRAY_DEVICE inline std::int64_t first_point(const Grid& g) {
  return static_cast<std::int64_t>(g.block) * g.threads + g.thread;
}
SHARDARRAY_DEVICE inline std::int64_t point_step(const Grid& g) {
  return static_cast<std::int64_t>(g.blocks) * g.threads;
}
/// The first coordinates of a point are what is left of its number when the others are taken off. Index: holds all numbers.
template <class Index> SHARDARRAY_DEVICE inline std::int64_t take_off(Index& number, Index extent) {
  const Index rest = number / extent, at = number - rest * extent;
  number = rest;
  return static_cast<std::int64_t>(at);
}

}  // namespace shardarray::device
