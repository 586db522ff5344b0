// The launches of one step, by its kind.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/launch.h"
#include "cuda/table.h"
#include "kernels/arithmetic.cuh"

namespace shardarray::cuda {

inline constexpr std::uint32_t block_threads = 256;

/// Appends the step's launches. Steps without work have none.
void add_loop_launches(const Step& step, const Loop& loop, std::vector<KernelLaunch>& to);
/// `alignment`: bytes that all bases are multiples of.
void add_exchange_launches(const Step& step, const Exchange& exchange, std::uint64_t alignment,
                           std::vector<KernelLaunch>& to);
void add_gemm_launches(const Step& step, const Gemm& gemm, std::uint64_t alignment,
                       std::vector<KernelLaunch>& to);
/// Whether the own kernel makes these products in tiles: all of them are large, and there are enough.
bool in_tiles(const Gemm& gemm, const std::vector<std::size_t>& items);
/// Gives the launch of a product step the calls that do the next launch too, where the library can make all of them.
void add_epilogue_calls(const ProductEpilogue& both, std::uint64_t alignment, KernelLaunch& launch);
/// Of all its products.
double multiply_adds(const Gemm& gemm);
void add_library_launches(const Step& step, const LibraryCall& call, std::uint64_t alignment,
                          std::vector<KernelLaunch>& to);
/// False of a library call for which there are no kernels: the host does it.
bool has_kernels(const Step& step);

/// A launch with a thread for each point of the largest item, and no more blocks than keep a large GPU busy.
/// Throws CompileError for more items than a grid has.
KernelLaunch make_launch(const Step& step, const char* kernel, std::size_t items, std::int64_t points,
                         LaunchTable table);
/// How many blocks of an item that takes, where a launch has so many items.
std::uint32_t blocks_for(std::int64_t points, std::uint32_t threads, std::size_t items = 1);

/// The launch of a kernel whose table begins with a T, which lists its items; `points`: of the largest. Nothing to do, no launch.
template <class T, class Item>
void add_launch(const Step& step, const char* kernel, T head, const std::vector<Item>& items,
                std::int64_t points, LaunchTable table, std::vector<KernelLaunch>& to) {
  if (points == 0) return;
  head.items = table.add(items);
  table.put(0, head);
  to.push_back(make_launch(step, kernel, items.size(), points, std::move(table)));
}

/// Of a kernel that combines elements as its table says, the name; that of the one for sums of float32 where these are asked for.
#define SHARDARRAY_COMBINING(name, combine) (is_sum_of_floats(combine) ? name "_sum_f32" : (name))
inline bool is_sum_of_floats(const device::Instruction& combine) {
  return combine.code == Code::add && combine.type == float32;
}

inline device::Address device_address(const Ref& r) { return {r.base, r.offset}; }
/// What all bases of a called program are multiples of: they may be elements of sequences, of any size.
std::uint64_t call_alignment(const ProgramCall& call, std::uint64_t alignment);

}  // namespace shardarray::cuda
