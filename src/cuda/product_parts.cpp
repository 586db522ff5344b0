#include "cuda/product_parts.h"

#include <algorithm>

#include "base/ceil_div.h"
#include "cuda/libraries.h"
#include "cuda/step_launches.h"
#include "cuda/table.h"
#include "kernels/parts.cuh"
#include "shardarray/dtype.h"

namespace shardarray::cuda {
namespace {

constexpr std::int64_t tile_side = 64;  // about what one multiprocessor computes
constexpr std::size_t line = 16;        // bytes: a thread's widest load
constexpr std::int64_t most_addresses = 4096;

std::int64_t tiles_of(const ProductCall& c) {
  return c.batch * ceil_div(c.result.rows, tile_side) * ceil_div(c.result.columns, tile_side);
}

/// The smallest divisor of the depth in `least` .. 2 * `least`; 0: none. If the whole depth is a multiple of a line, so is each part's.
std::int64_t divisor_from(std::int64_t depth, std::int64_t least, std::size_t element) {
  const auto at_line = [&](std::int64_t k) { return static_cast<std::size_t>(k) * element % line == 0; };
  for (std::int64_t parts = least; parts <= 2 * least; parts++)
    if (depth % parts == 0 && (at_line(depth / parts) || !at_line(depth))) return parts;
  return 0;
}

void align(ProductMatrix& m, std::uint64_t bytes) {
  const std::uint64_t all = bytes | m.alignment;
  m.alignment = static_cast<std::uint32_t>(all & -all);  // the lowest set bit
}

/// Cuts a factor into parts, along its rows or its columns.
void cut(ProductMatrix& m, bool rows, std::int64_t depth, std::size_t element) {
  (rows ? m.rows : m.columns) = depth;
  m.part_stride = rows ? depth : depth * m.ld;
  align(m, static_cast<std::uint64_t>(m.part_stride) * element);
}

/// Lists the addresses of all parts of all products.
void spread(ProductMatrix& m, std::int64_t products, std::int64_t parts, std::size_t element) {
  const std::vector<Ref> whole = std::move(m.refs);
  m.refs.clear();
  for (std::int64_t i = 0; i < products; i++)
    for (std::int64_t p = 0; p < parts; p++) {
      const bool each = whole.size() > 1;
      Ref& r = m.refs.emplace_back(whole[each ? static_cast<std::size_t>(i) : 0]);
      r.offset += static_cast<std::uint64_t>((each ? 0 : i * m.stride) + p * m.part_stride) * element;
    }
  m.stride = 0;
}

}  // namespace

std::vector<std::int64_t> part_counts(const ProductCall& call, int multiprocessors) {
  const ProductLimits& limits = product_limits();
  std::vector<std::int64_t> counts;
  const std::int64_t tiles = tiles_of(call), depth = call.depth(), least_depth = limits.deep / 8;
  if (call.parts > 1 || call.has_bias() || call.relu || depth < limits.deep || 2 * tiles > multiprocessors)
    return counts;
  for (const std::int64_t times : {1, 2, 4}) {  // blocks per multiprocessor
    const std::int64_t parts = divisor_from(
        depth, std::max<std::int64_t>(2, ceil_div(times * multiprocessors, tiles)), itemsize(call.in));
    const bool known = !counts.empty() && counts.back() >= parts;
    if (parts == 0 || known || depth / parts < least_depth || call.batch * parts > most_addresses) continue;
    counts.push_back(parts);
  }
  return counts;
}

ProductCall in_parts(const ProductCall& call, std::int64_t parts) {
  const std::size_t in = itemsize(call.in), out = itemsize(call.out);
  const std::int64_t depth = call.depth() / parts, products = call.batch;
  ProductCall c = call;
  c.parts = parts;
  c.batch = products * parts;
  c.sum = call.result;
  cut(c.first, call.transpose_first, depth, in);
  cut(c.second, !call.transpose_second, depth, in);
  constexpr std::int64_t floats = 4;  // columns begin at a multiple of a line
  c.result.ld = ceil_div(call.result.rows, floats) * floats;
  c.result.part_stride = c.result.ld * call.result.columns;
  c.result.refs = {{scratch_base, 0}};
  c.result.alignment = 64;
  align(c.result, static_cast<std::uint64_t>(c.result.part_stride) * out);
  const auto goes_on = [&](const ProductMatrix& m) { return m.stride == parts * m.part_stride; };
  const bool strided = !call.by_pointers() && (products == 1 || (goes_on(c.first) && goes_on(c.second)));
  for (ProductMatrix* const m : {&c.first, &c.second, &c.result}) {
    if (m == &c.result) m->stride = parts * m->part_stride;
    if (strided) m->stride = m->part_stride;
    else spread(*m, products, parts, m == &c.result ? out : in);
  }
  return c;
}

std::size_t bytes_of_parts(const ProductCall& call) {
  constexpr std::size_t line_of_scratch = 256;
  if (call.parts == 1) return 0;
  const auto elements = static_cast<std::size_t>(call.batch * call.result.part_stride);
  return ceil_div(elements * itemsize(call.out), line_of_scratch) * line_of_scratch;
}

PartsSum sum_of_parts(const ProductCall& call) {
  constexpr std::int64_t few_elements = 8192;  // a guess: one thread each would leave most of a GPU idle
  const ProductMatrix &from = call.result, &to = call.sum;
  const std::int64_t products = call.batch / call.parts, elements = products * to.rows * to.columns;
  std::vector<device::Address> sums;
  for (std::int64_t i = 0; i < products; i++) {
    const bool each = to.refs.size() > 1;
    Ref r = to.refs[each ? static_cast<std::size_t>(i) : 0];
    if (!each) r.offset += static_cast<std::uint64_t>(i * to.stride) * itemsize(call.out);
    sums.push_back(device_address(r));
  }
  const bool by_warps = call.parts >= device::warp_lanes && elements <= few_elements;
  LaunchTable table;
  table.reserve<device::PartsTable>();
  device::PartsTable head{};
  head.sums = table.add(sums);
  head.rows = to.rows;
  head.columns = to.columns;
  head.ld = to.ld;
  head.parts = call.parts;
  head.part_ld = from.ld;
  head.part_stride = from.part_stride;
  head.by_warps = by_warps ? 1 : 0;
  table.put(0, head);
  return {call.out == float64 ? "shardarray_sum_parts_f64" : "shardarray_sum_parts_f32",
          {blocks_for(by_warps ? elements * device::warp_lanes : elements, block_threads), 1, block_threads},
          table.take()};
}

}  // namespace shardarray::cuda
