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

/// Appends the step's launches; none for a step without work.
void add_loop_launches(const Step& step, const Loop& loop, std::vector<KernelLaunch>& to);
/// `alignment`: bytes that all bases are multiples of.
void add_exchange_launches(const Step& step, const Exchange& exchange, std::uint64_t alignment,
                           std::vector<KernelLaunch>& to);
void add_gemm_launches(const Step& step, const Gemm& gemm, std::uint64_t alignment,
                       std::vector<KernelLaunch>& to);
/// Whether our own kernel computes these products in tiles: all are large, and there are enough tiles.
bool in_tiles(const Gemm& gemm, const std::vector<std::size_t>& items);
/// Adds to a product step's launch the calls that also do the next launch, if the library can do all of them.
void add_epilogue_calls(const ProductEpilogue& both, std::uint64_t alignment, KernelLaunch& launch);
/// Over all its products.
double multiply_adds(const Gemm& gemm);
void add_library_launches(const Step& step, const LibraryCall& call, std::uint64_t alignment,
                          std::vector<KernelLaunch>& to);
/// False for a library call without kernels: the host does it.
bool has_kernels(const Step& step);

/// A launch with one thread per point of the largest item, with at most enough blocks to fill a large GPU. Throws CompileError for more
/// items than a grid has.
KernelLaunch make_launch(const Step& step, const char* kernel, std::size_t items, std::int64_t points,
                         LaunchTable table);
/// Blocks per item, in a launch with so many items.
std::uint32_t blocks_for(std::int64_t points, std::uint32_t threads, std::size_t items = 1);

/// The launch of a kernel whose table begins with a T, which lists its items; `points`: of the largest. No launch if there is nothing to
/// do.
template <class T, class Item>
void add_launch(const Step& step, const char* kernel, T head, const std::vector<Item>& items,
                std::int64_t points, LaunchTable table, std::vector<KernelLaunch>& to) {
  if (points == 0) return;
  head.items = table.add(items);
  table.put(0, head);
  to.push_back(make_launch(step, kernel, items.size(), points, std::move(table)));
}

/// The name of a kernel that combines elements as its table says, or of its variant for sums of float32.
#define SHARDARRAY_COMBINING(name, combine) (is_sum_of_floats(combine) ? name "_sum_f32" : (name))
inline bool is_sum_of_floats(const device::Instruction& combine) {
  return combine.code == Code::add && combine.type == float32;
}

inline device::Address device_address(const Ref& r) { return {r.base, r.offset}; }
/// What all bases of a called program are multiples of; they may be elements of sequences, of any size.
std::uint64_t call_alignment(const ProgramCall& call, std::uint64_t alignment);

}  // namespace shardarray::cuda
