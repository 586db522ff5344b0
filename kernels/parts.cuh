// Split-K products: each element is the sum of its partial results.
#pragma once
#include "kernels/device.cuh"
#include "kernels/lanes.cuh"

namespace shardarray::device {

/// Column-major matrices; elements and strides in elements. The parts are consecutive in scratch memory, product by product.
struct PartsTable {
  List<Address> sums;  ///< the results, by product
  std::int64_t rows, columns, ld, parts, part_ld, part_stride;
  std::int64_t by_warps;  ///< 1: one warp per element, for few elements of many parts; 0: one thread
};

template <class T>
SHARDARRAY_DEVICE void sum_parts(const Grid& g, const std::byte* table, std::byte* scratch,
                                 const Bases& bases) {
  const PartsTable& t = *reinterpret_cast<const PartsTable*>(table);
  const Address* const sums = entries(table, t.sums);
  const std::int64_t of_product = t.rows * t.columns, elements = of_product * t.sums.count;
  // An element's first summand, and its result.
  const auto from = [&](std::int64_t at) {
    const std::int64_t product = at / of_product, rest = at % of_product;
    return reinterpret_cast<const T*>(scratch) + product * t.parts * t.part_stride +
           rest / t.rows * t.part_ld + rest % t.rows;
  };
  const auto to = [&](std::int64_t at) -> T& {
    const std::int64_t product = at / of_product, rest = at % of_product;
    return reinterpret_cast<T*>(address_of(bases, sums[product]))[rest / t.rows * t.ld + rest % t.rows];
  };
  // Ascending from `first`; unrolled for several loads in flight.
  const auto added = [&](const T* x, std::int64_t first, std::int64_t step) {
    T sum = x[first * t.part_stride];
#ifdef __CUDACC__
#pragma unroll 8
#endif
    for (std::int64_t p = first + step; p < t.parts; p += step) sum += x[p * t.part_stride];
    return sum;
  };
  if (t.by_warps == 0) {
    SHARDARRAY_LANES(lane)
    for (std::int64_t at = first_point(g) / warp_lanes * warp_lanes + lane; at < elements;
         at += point_step(g))
      to(at) = added(from(at), 0, 1);
    return;
  }
  for (std::int64_t at = first_point(g) / warp_lanes; at < elements; at += point_step(g) / warp_lanes) {
    T mine[lanes_here];
    SHARDARRAY_LANES(lane) mine[lane % lanes_here] = added(from(at), lane, warp_lanes);  // parts >= lanes
    add_lanes(mine);
    SHARDARRAY_LANES(lane) if (lane == 0) to(at) = mine[0];
  }
}

}  // namespace shardarray::device
