// Products: by our own kernels for every dtype; large ones of floats may be cuBLASLt calls instead.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cuda/libraries.h"
#include "cuda/products.h"
#include "cuda/step_launches.h"
#include "kernels/gemm_tiles.cuh"

namespace shardarray::cuda {
namespace {

/// One thread per element; large tiles by block; for floats, small tiles for long sums; one warp per element.
struct ProductKernels {
  const char *elements, *tiles, *deep, *lanes;
};
#define SHARDARRAY_PRODUCT_KERNELS(type) \
  { "shardarray_product_" type, "shardarray_product_tiles_" type, nullptr, nullptr }
#define SHARDARRAY_FLOAT_KERNELS(type)                                                             \
  {                                                                                                \
    "shardarray_product_" type, "shardarray_product_tiles_" type, "shardarray_product_deep_" type, \
        "shardarray_product_by_lanes_" type                                                        \
  }
/// Null members: no such kernel.
ProductKernels product_kernels(DType in, DType out) {
  if (in == float16 && out == float32) return SHARDARRAY_FLOAT_KERNELS("f16");
  if (in == bfloat16 && out == float32) return SHARDARRAY_FLOAT_KERNELS("bf16");
  if (in != out) return {};
  switch (in) {
    case bool_: return SHARDARRAY_PRODUCT_KERNELS("bool");
    case int8:
    case uint8: return SHARDARRAY_PRODUCT_KERNELS("u8");  // signed and unsigned wrap to the same bits
    case int16:
    case uint16: return SHARDARRAY_PRODUCT_KERNELS("u16");
    case int32:
    case uint32: return SHARDARRAY_PRODUCT_KERNELS("u32");
    case int64:
    case uint64: return SHARDARRAY_PRODUCT_KERNELS("u64");
    case float32: return SHARDARRAY_FLOAT_KERNELS("f32");
    case float64: return SHARDARRAY_FLOAT_KERNELS("f64");
    default: return {};
  }
}
#undef SHARDARRAY_PRODUCT_KERNELS
#undef SHARDARRAY_FLOAT_KERNELS

// One per two multiprocessors of a large GPU: with fewer tiles, one thread per element is faster. A guess, to be measured.
constexpr std::int64_t fewest_tiles = 64;
static_assert(block_threads == device::tile_threads);

// With one thread per element, a thread waits for memory at every eighth product: for long sums deep tiles are faster, unless enough
// threads run concurrently to hide the latency.
constexpr std::int64_t fewest_deep = 2 * device::DeepTile::depth, most_deep_elements = 1 << 16;

// If the order is free, lanes sharing an element are faster still.
constexpr std::int64_t fewest_shared = device::warp_lanes, most_shared = 1 << 16;  // products per element
constexpr std::int64_t most_shared_elements = 1 << 13;
constexpr std::int64_t most_products_of_lane = most_shared / device::warp_lanes;  // in one chain

/// How many lanes of a warp should share an element. More lanes wait for memory fewer times, but read more cache lines. The cost of both is
/// in cycles, for multiprocessors with 32 active warps that fetch one line per cycle (H200: within a few tens of percent), and for 32 of
/// them, between a cluster and a whole GPU, because a program must give the same bits in one kernel and in several.
std::int64_t best_lanes(const std::vector<device::ProductItem>& items) {
  constexpr double wait = 500, ahead = 8, threads = 1024, multiprocessors = 32;
  std::int64_t best = device::warp_lanes;
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t lanes = 1; lanes <= device::warp_lanes; lanes *= 2) {
    const auto shared = static_cast<double>(lanes), side = device::warp_lanes / shared;
    double elements = 0, longest = 0, lines = 0;
    for (const device::ProductItem& p : items) {
      const double own = static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n),
                   k = static_cast<double>(p.k);
      const double rows_of_a = std::ceil(side / static_cast<double>(std::max<std::int64_t>(p.n, 1)));
      elements += own;
      longest = std::max(longest, k);
      // Adjacent elements have adjacent columns of B, and mostly the same row of A.
      lines += own / side * k / shared *
               ((p.a_col == 1 ? rows_of_a : shared) + (p.b_row == 1 ? side / rows_of_a : shared));
    }
    if (longest > shared * most_products_of_lane) continue;
    const double rounds = std::ceil(elements * shared / (multiprocessors * threads)),
                 cycles = rounds * std::ceil(longest / shared / ahead) * wait + lines / multiprocessors;
    if (cycles < least) best = lanes;
    least = std::min(least, cycles);
  }
  return best;
}

template <class Shape> std::int64_t tiles_of(const Gemm::Item& g) {
  return g.batch * device::tiles_along<Shape>(g.m) * device::tiles_along<Shape>(g.n);
}
bool in_deep_tiles(const Gemm& gemm, const std::vector<std::size_t>& items) {
  std::int64_t elements = 0;
  for (const std::size_t i : items) {
    const Gemm::Item& g = gemm.items[i];
    if (g.k < fewest_deep) return false;
    elements += g.batch * g.m * g.n;
  }
  return elements <= most_deep_elements;
}

bool may_be_shared(const Gemm& gemm, const std::vector<std::size_t>& items) {
  std::int64_t elements = 0;
  for (const std::size_t i : items) {
    const Gemm::Item& g = gemm.items[i];
    if (g.k < fewest_shared || g.k > most_shared) return false;
    elements += g.batch * g.m * g.n;
  }
  return !gemm.fixed_order && elements <= most_shared_elements;
}

device::ProductItem product_item(const Gemm::Item& g) {
  device::ProductItem p{};
  p.a = device_address(g.a);
  p.b = device_address(g.b);
  p.c = device_address(g.c);
  p.m = g.m;
  p.n = g.n;
  p.k = g.k;
  p.batch = g.batch;
  p.a_row = g.ta ? 1 : g.lda;
  p.a_col = g.ta ? g.lda : 1;
  p.a_batch = g.stride_a;
  p.b_row = g.tb ? 1 : g.ldb;
  p.b_col = g.tb ? g.ldb : 1;
  p.b_batch = g.stride_b;
  p.c_row = g.ldc;
  p.c_batch = g.stride_c;
  return p;
}

void add_own_products(const Step& step, const ProductKernels& kernels, const Gemm& gemm,
                      const std::vector<std::size_t>& chosen, std::vector<KernelLaunch>& to) {
  LaunchTable table;
  table.reserve<device::ProductTable>();
  std::vector<device::ProductItem> items;
  const bool large = in_tiles(gemm, chosen),
             lanes = !large && kernels.lanes != nullptr && may_be_shared(gemm, chosen),
             deep = !large && !lanes && kernels.deep != nullptr && in_deep_tiles(gemm, chosen);
  std::int64_t elements = 0, tiles = 0;
  for (const std::size_t i : chosen) {
    const Gemm::Item& g = gemm.items[i];
    items.push_back(product_item(g));
    elements = std::max(elements, g.batch * g.m * g.n);
    tiles = std::max(tiles, large ? tiles_of<device::LargeTile>(g) : tiles_of<device::DeepTile>(g));
  }
  if (elements == 0) return;
  const std::int64_t sharing = lanes ? best_lanes(items) : 1;
  for (device::ProductItem& p : items) p.lanes = sharing;
  const bool in_any = large || deep;
  add_launch(step,
             large   ? kernels.tiles
             : lanes ? kernels.lanes
             : deep  ? kernels.deep
                     : kernels.elements,
             device::ProductTable{}, items,
             in_any  ? tiles * device::tile_threads
             : lanes ? elements * sharing
                     : elements,
             std::move(table), to);
  if (!in_any) return;
  to.back().any_block_kernel = kernels.elements;
  to.back().points = elements;
}

}  // namespace

bool in_tiles(const Gemm& gemm, const std::vector<std::size_t>& items) {
  std::int64_t tiles = 0;
  for (const std::size_t i : items) {
    const Gemm::Item& g = gemm.items[i];
    if (std::min(g.m, g.n) < device::LargeTile::side || g.k < device::LargeTile::depth) return false;
    tiles += tiles_of<device::LargeTile>(g);
  }
  return tiles >= fewest_tiles;
}

void add_gemm_launches(const Step& step, const Gemm& gemm, std::uint64_t alignment,
                       std::vector<KernelLaunch>& to) {
  const ProductKernels kernels = product_kernels(gemm.in, gemm.out);
  if (kernels.elements == nullptr) {
    throw CompileError(fmt::format(
        "matmul: CUDA has no kernel for {} with results in {}. It multiplies bool, integers, float32 and "
        "float64, and 16-bit floats with results in float32. Convert the operands first.",
        name(gemm.in), name(gemm.out)));
  }
  ProductSplit split = split_products(gemm, alignment, product_limits().own);
  add_own_products(step, kernels, gemm, split.own, to);
  if (split.calls.empty()) return;
  add_own_products(step, kernels, gemm, split.called, to);
  to.back().products = std::move(split.calls);
}

double multiply_adds(const Gemm& gemm) {
  double all = 0;
  for (const Gemm::Item& g : gemm.items)
    all += static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) *
           static_cast<double>(g.batch);
  return all;
}

void add_epilogue_calls(const ProductEpilogue& both, std::uint64_t alignment, KernelLaunch& launch) {
  constexpr std::uint32_t least_alignment = 16;        // of a bias
  if (launch.items != both.gemm.items.size()) return;  // some use our own kernel
  ProductSplit split = split_products(both, alignment, product_limits().own);
  if (!split.own.empty() || split.calls.size() != launch.products.size()) return;
  for (std::size_t k = 0; k < split.calls.size(); k++) {
    const ProductCall& c = split.calls[k];
    if (!same_products(c, launch.products[k]) || (c.has_bias() && c.bias.alignment < least_alignment)) return;
  }
  launch.products_and_next = std::move(split.calls);
}

}  // namespace shardarray::cuda
