// What host and device share: plain structs, and how one source of a kernel runs on either.
//
// On the device every thread runs it; on the host (tests, the fake device) a loop over the threads of a block does. Whatever is known when
// a program is loaded is in the launch's table, where lists are offsets into the table, never pointers; the base addresses of a run are an
// argument.
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

// Before a loop over points. In the kernel of a whole program each loop has few points per thread and instruction fetch dominates: short
// code is faster.
#if defined(__CUDACC__) && defined(SHARDARRAY_PROGRAM_BASES)
#define SHARDARRAY_POINTS _Pragma("unroll 1")
#else
#define SHARDARRAY_POINTS
#endif

namespace shardarray::device {

/// The base pointers of a run (Ref::base). Up to `few_bases` are kernel arguments; more are in device memory.
#ifdef SHARDARRAY_PROGRAM_BASES  // the kernel of a small program: all its addresses are kernel arguments
inline constexpr std::uint32_t few_bases = SHARDARRAY_PROGRAM_BASES;
using PointNumber = std::uint32_t;
#else
inline constexpr std::uint32_t few_bases = 60;
using PointNumber = std::uint64_t;  ///< holds the number of any point of a launch
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
  // Its arenas may be in shared memory. (NVRTC 13.0 hangs on some texts that mix those with global pointers.)
  return reinterpret_cast<std::byte*>(bases.few[a.base] + a.offset);
#else
  const std::uint64_t base = bases.many ? bases.many[a.base] : bases.few[a.base];
#ifdef __CUDACC__
  // For a known global address the compiler emits ld.global/st.global rather than generic accesses.
  return static_cast<std::byte*>(__cvta_global_to_generic(base + a.offset));
#else
  return reinterpret_cast<std::byte*>(base + a.offset);
#endif
#endif
}

/// A list inside a table.
template <class T> struct List { std::uint32_t offset, count; };
template <class T> SHARDARRAY_DEVICE inline const T* entries(const std::byte* table, const List<T>& list) {
  return reinterpret_cast<const T*>(table + list.offset);
}

/// Bytes that kernels may read past the tables of launches.
inline constexpr std::uint32_t table_margin = 2048;

/// At the start of each kernel, which may be launched while its predecessor still runs (Driver::launch). Lets the successor launch too, and
/// prefetches tables, which no kernel writes; nothing else is read or written before the predecessor is done.
SHARDARRAY_DEVICE inline void wait_for_kernel_before([[maybe_unused]] const std::byte* table) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  constexpr std::uint32_t line = 128;
  if (threadIdx.x < table_margin / line)
    asm volatile("prefetch.global.L1 [%0];" ::"l"(table + threadIdx.x * line));
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// A thread's position; items are the grid's y dimension.
struct Grid {
  std::uint32_t block, blocks, item, thread, threads;
};
/// The first point of a thread, and the stride to its next one.
SHARDARRAY_DEVICE inline std::int64_t first_point(const Grid& g) {
  return static_cast<std::int64_t>(g.block) * g.threads + g.thread;
}
SHARDARRAY_DEVICE inline std::int64_t point_step(const Grid& g) {
  return static_cast<std::int64_t>(g.blocks) * g.threads;
}
/// Takes the last coordinate off a point's number: its value is returned, the rest stays. Index: a type that holds all numbers.
template <class Index> SHARDARRAY_DEVICE inline std::int64_t take_off(Index& number, Index extent) {
  const Index rest = number / extent, at = number - rest * extent;
  number = rest;
  return static_cast<std::int64_t>(at);
}

}  // namespace shardarray::device
